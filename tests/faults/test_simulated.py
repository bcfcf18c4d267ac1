"""The whole run on a simulated machine: nothing lost, nothing twice, nothing changed, whatever fails and whenever.

SEED=n plays one schedule again. SEEDS=n plays n schedules; `make simulate` plays more, on all cores.
"""

import asyncio
import os
from collections.abc import Sequence
from random import Random

import pytest

from tests.faults.disk import FakeDisk, Strike
from tests.faults.loop import Deadlock, VirtualLoop, pause
from tests.faults.schedules import complaint, played, scenarios
from tests.faults.sim import Scenario, Schedule, Start, play

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("SEEDS", "40"))
SWEPT = (
    Strike.KILL,
    Strike.POWER_CUT,
    *(pytest.param(each, marks=pytest.mark.nightly) for each in (Strike.EIO, Strike.EIO_AFTER, Strike.ENOSPC)),
)
PINNED: dict[int, str] = {}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Scenario]:
    return scenarios(tmp_path_factory.mktemp("inputs"))


def test_schedules(inputs: Sequence[Scenario]) -> None:
    chosen = os.environ.get("SEED")
    for seed in [int(chosen)] if chosen else range(SEEDS):
        found = complaint(seed, inputs)
        assert not found, found


@pytest.mark.parametrize("strike", SWEPT)
def test_each_effect_struck_in_turn(inputs: Sequence[Scenario], strike: Strike) -> None:
    scenario = inputs[0]
    effects = play("count", scenario, Schedule(starts=[Start(target=2)], staged=False, turns=0.0)).effects
    assert effects > 50
    for number in range(1, effects + 1):
        schedule = Schedule(starts=[Start(target=2, strikes={number: strike})], staged=False, turns=0.0)
        world = play(number, scenario, schedule)
        assert not world.violations, f"{strike} at effect {number}: {world.violations}\n" + "\n".join(world.trace)


def test_a_seed_decides_everything(inputs: Sequence[Scenario]) -> None:
    for seed in range(5):
        assert played(seed, inputs).trace == played(seed, inputs).trace


def test_virtual_time_passes_without_waiting_and_threads_take_turns() -> None:
    loop, order = VirtualLoop(), list[str]()

    def work(name: str, seconds: float) -> None:
        for step in range(2):
            order.append(f"{name}{step} at {loop.time():g}")
            pause(seconds)

    async def both() -> None:
        await asyncio.gather(asyncio.to_thread(work, "a", 1000.0), asyncio.to_thread(work, "b", 700.0))

    loop.run_until_complete(both())
    loop.close()
    assert order == ["a0 at 0", "b0 at 0", "b1 at 700", "a1 at 1000"]


def test_a_deadlock_is_an_error() -> None:
    loop = VirtualLoop()
    with pytest.raises(Deadlock):
        loop.run_until_complete(loop.create_future())
    loop.close()


def test_what_was_not_synced_may_be_gone_after_a_power_cut_and_what_was_is_there() -> None:
    outcomes = set()
    for seed in range(60):
        disk = FakeDisk()
        disk.make_folder("/run")
        disk.write("/run/synced", b"whole")
        disk.sync("/run/synced")
        disk.write("/run/content", b"whole")
        disk.sync_folder("/run")
        disk.write("/run/name", b"whole")
        disk.sync("/run/name")
        disk.power_cut(Random(seed))
        assert disk.read("/run/synced") == b"whole"
        outcomes.add((len(disk.read("/run/content")), "name" in disk.names("/run")))
    assert {named for _, named in outcomes} == {True, False}
    assert {length for length, _ in outcomes} >= {0, 5}


@pytest.mark.parametrize("seed", PINNED, ids=PINNED.values())
def test_pinned(inputs: Sequence[Scenario], seed: int) -> None:
    found = complaint(seed, inputs)
    assert not found, found
