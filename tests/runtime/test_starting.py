"""Starts of workers that fail, are late or wait, with scripted workers on a scripted cluster and a virtual clock."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.config.label import RunConfig
from pipeline.core.errors import ClusterError, EngineDied, PlaceError, PolicyError, StepvalueError, WorkerLost
from pipeline.core.progress import EngineWork, Status, new_warnings
from pipeline.runtime.places import RESERVED_SECONDS
from pipeline.runtime.starting import NextStart, next_start
from pipeline.runtime.worker import Receipt, Snapshot, UnitTask
from pipeline.runtime.worker_handle import WorkerLocation, WorkerPool
from tests.runtime.idle import IdleWorker, job, scheduler
from tests.runtime.virtual_clock import on_a_virtual_clock

pytestmark = pytest.mark.slow

UNITS = 64
REQUESTS = 4
"""Of each unit."""
FOREVER = 1e9
LOOKS = 8.0
"""How much later than it should a place is given up: the driver looks every 5 seconds, and a start fails within 1."""
FULL = PlaceError("the policy m cannot be loaded: Free memory on device cuda:0 (3.12/79.11 GiB)")
DEAD = EngineDied("a worker died: its process was killed")


@dataclass
class Gpus:
    """A machine with GPUs, each for `engines` workers. `faults`: by GPU, what a start raises or how many seconds it takes.

    Faults are used up from the front; the last one stays.
    """

    count: int
    engines: int = 1
    faults: dict[int, list[Exception | float]] = field(default_factory=dict)
    downloads: list[float] = field(default_factory=list)
    """Seconds that the first downloads take; later ones take none."""
    dead_waiting: list[Exception] = field(default_factory=list)
    """Why the first workers that wait for a GPU die."""
    befalls: list[Exception | float] = field(default_factory=list)
    """What the first units raise, or how many seconds more they take."""
    moves: bool = False
    """Whether tokens come all the time."""
    dead_at_work: frozenset[int] = frozenset()
    """GPUs where each worker dies with its first unit."""
    deadly: frozenset[str] = frozenset()
    """Requests that kill every engine: `u3-1` is of unit `u3`."""
    work_seconds: float = 5.0
    owed: dict[str, set[str]] = field(default_factory=dict)
    """By unit, its requests that are not answered."""
    written_off: set[str] = field(default_factory=set)
    taken: dict[int, int] = field(default_factory=dict)
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    starts: list[int] = field(default_factory=list)
    moments: dict[int, list[float]] = field(default_factory=dict)
    """By GPU, the seconds of the starts on it."""
    loading: dict[int, int] = field(default_factory=dict)
    together: int = 0
    """The most engines that loaded on one GPU at a time."""
    labelled: dict[int, int] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    """The units as they were given out."""
    hired: int = 0
    drained: int = 0
    alive: int = 0

    async def take(self) -> int:
        """The free GPU with the lowest number, as Ray does."""
        while True:
            for gpu in range(self.count):
                if self.taken.get(gpu, 0) < self.engines:
                    self.taken[gpu] = self.taken.get(gpu, 0) + 1
                    return gpu
            if self.dead_waiting:
                await asyncio.sleep(0.01)
                raise self.dead_waiting.pop(0)
            self.freed.clear()
            await self.freed.wait()

    def give_back(self, gpu: int) -> None:
        self.taken[gpu] -= 1
        self.freed.set()


class GpuWorker(IdleWorker):
    def __init__(self, gpus: Gpus) -> None:
        self._gpus = gpus
        self._gpu: int | None = None
        self._killed = False
        self._loading = False
        self._dead = False
        self._looks = 0
        gpus.alive += 1
        gpus.hired += 1

    async def location(self) -> WorkerLocation:
        gpu = await self._gpus.take()
        if self._killed:
            self._gpus.give_back(gpu)
            raise EngineDied("it was killed")
        self._gpu = gpu
        return WorkerLocation(machine="m", gpus=(str(gpu),), shared=self._gpus.engines > 1)

    async def fetch(self) -> None:
        if self._gpus.downloads:
            await asyncio.sleep(self._gpus.downloads.pop(0))

    async def start(self) -> str:
        gpus, gpu = self._gpus, self._gpu
        assert gpu is not None
        gpus.starts.append(gpu)
        gpus.moments.setdefault(gpu, []).append(asyncio.get_running_loop().time())
        gpus.loading[gpu] = gpus.loading.get(gpu, 0) + 1
        gpus.together = max(gpus.together, gpus.loading[gpu])
        self._loading = True
        try:
            faults = gpus.faults.get(gpu, [])
            fault = (faults.pop(0) if len(faults) > 1 else faults[0]) if faults else 1.0
            if isinstance(fault, Exception):
                await asyncio.sleep(0.5)
                raise fault
            await asyncio.sleep(fault)
        finally:
            self._stop_loading()
        return "policy"

    def _stop_loading(self) -> None:
        if self._loading:
            assert self._gpu is not None
            self._loading = False
            self._gpus.loading[self._gpu] -= 1

    async def finish_unit(self, task: UnitTask) -> Receipt:
        assert self._gpu is not None
        gpus, unit = self._gpus, task.unit.unit_id
        gpus.order.append(unit)
        await asyncio.sleep(gpus.work_seconds)
        if self._dead:
            raise DEAD
        if gpus.befalls:
            fault = gpus.befalls.pop(0)
            if isinstance(fault, Exception):
                raise fault
            await asyncio.sleep(fault)
        only, failed = (task.probe.only, task.probe.failed) if task.probe else (gpus.owed[unit], frozenset())
        gpus.owed[unit] -= failed
        gpus.written_off |= failed
        asked = gpus.owed[unit] & only
        if self._gpu in gpus.dead_at_work or asked & gpus.deadly:
            self._dead = True
            raise DEAD
        gpus.owed[unit] -= asked
        if whole := not gpus.owed[unit]:
            gpus.labelled[self._gpu] = gpus.labelled.get(self._gpu, 0) + 1
        return Receipt(whole=whole, engine_failed=len(failed))

    async def missing_requests(self, task: UnitTask) -> list[str]:
        return sorted(self._gpus.owed[task.unit.unit_id])

    async def snapshot(self) -> Snapshot:
        self._looks += self._gpus.moves
        return Snapshot(work=EngineWork(generated=self._looks))

    async def drain(self) -> None:
        self._gpus.drained += 1

    def kill(self) -> None:
        if not self._killed:
            self._killed = True
            self._gpus.alive -= 1
            self._stop_loading()
            if self._gpu is not None:
                self._gpus.give_back(self._gpu)


@dataclass(frozen=True)
class Ended:
    shown: list[Status]
    error: StepvalueError | None

    @property
    def warnings(self) -> list[str]:
        found: list[str] = []
        before: tuple[str, ...] = ()
        for status in self.shown:
            found += new_warnings(before, status.warnings)
            before = status.warnings
        return found


def run(
    gpus: Gpus,
    workers: int,
    wait_seconds: float = 600.0,
    units: int = UNITS,
    sizes: Sequence[int] = (),
    check: Callable[[], None] = lambda: None,
    **limits: float,
) -> Ended:
    """A run on a virtual clock. Nothing of it is left at its end, also if it failed. `sizes`: of the units."""
    shown: list[Status] = []
    gpus.owed = {f"u{unit}": {f"u{unit}-{request}" for request in range(REQUESTS)} for unit in range(units)}
    pool = WorkerPool(
        hire=lambda _: GpuWorker(gpus),
        workers=workers,
        wait_seconds=wait_seconds,
        resources=lambda: "each needs 1 GPU, and all are taken",
        has_free_device=lambda: any(gpus.taken.get(gpu, 0) < gpus.engines for gpu in range(gpus.count)),
    )
    config: dict[str, Any] = {"units_in_flight": 1, **limits}
    jobs = [job(unit, size=size) for unit, size in zip(gpus.owed, sizes or [0] * units, strict=True)]
    at_work = scheduler(pool, jobs, RunConfig(**config), watch=shown.append, check=check)
    error = None
    try:
        on_a_virtual_clock(at_work.work_off())
    except StepvalueError as raised:
        error = raised
    assert gpus.alive == 0
    assert not any(gpus.taken.values())
    if error is None:
        assert sum(gpus.labelled.values()) == units
        assert not any(gpus.owed.values())
    return Ended(shown=shown, error=error)


def done(gpus: Gpus, workers: int, **settings: Any) -> Ended:
    """A run that ends well."""
    ended = run(gpus, workers, **settings)
    assert ended.error is None
    return ended


@pytest.mark.parametrize("fault", [FULL, DEAD])
def test_eight_workers_with_one_bad_gpu_label_everything_with_seven(fault: Exception) -> None:
    gpus = Gpus(count=8, faults={3: [fault]})
    ended = done(gpus, 8)
    assert set(gpus.labelled) == {0, 1, 2, 4, 5, 6, 7}
    assert gpus.starts.count(3) == 3, "run.attempts"
    assert f"m, GPU 3 could not start ({fault})" in ended.warnings[-1]
    assert "the run goes on with 7 of 8 workers" in ended.warnings[-1]


def test_a_gpu_that_is_bad_at_first_is_used_later() -> None:
    gpus = Gpus(count=2, faults={1: [FULL, 1.0]})
    ended = run(gpus, 2)
    assert set(gpus.labelled) == {0, 1}
    assert "as soon as another worker has started" in ended.warnings[0]


def test_another_place_is_tried_before_the_bad_one() -> None:
    gpus = Gpus(count=3, faults={0: [FULL]})
    done(gpus, 2)
    assert set(gpus.labelled) == {1, 2}
    assert gpus.starts.count(0) == 1


def test_a_bad_place_is_tried_again_after_twice_the_time_each_time() -> None:
    gpus = Gpus(count=2, faults={1: [FULL]})
    run(gpus, 2, attempts=4)
    gaps = [after - before for before, after in pairwise(gpus.moments[1])]
    for gap, factor in zip(gaps, (1, 2, 4), strict=True):
        assert 0 <= gap - factor * RESERVED_SECONDS < LOOKS


def test_a_bad_place_stays_reserved_although_a_worker_dies_that_waits_for_another() -> None:
    gpus = Gpus(count=2, faults={1: [FULL, 1.0]}, dead_waiting=[DEAD])
    done(gpus, 2)
    assert gpus.starts == [0, 1, 1]
    before, after = gpus.moments[1]
    assert 0 <= after - before - 2 * RESERVED_SECONDS < LOOKS, "the slot has failed twice"


def test_a_reserved_place_is_free_after_a_run_that_ended_while_workers_waited_for_another() -> None:
    gpus = Gpus(count=2, faults={1: [FULL]}, dead_waiting=[WorkerLost("its node died")] * 100)
    ended = run(gpus, 2)
    assert "100 workers in a row were lost" in str(ended.error)


def test_a_start_that_succeeds_forgets_the_failed_ones_before() -> None:
    gpus = Gpus(count=1, faults={0: [DEAD, DEAD, 1.0, DEAD, DEAD, 1.0]}, befalls=[DEAD])
    done(gpus, 1, attempts=3)
    assert gpus.starts == [0] * 6


def test_failed_starts_do_not_count_as_failures_of_the_run() -> None:
    """Half of the GPUs are bad, each for `run.attempts` starts."""
    gpus = Gpus(count=8, faults={0: [DEAD], 1: [FULL], 2: [DEAD], 3: [FULL]})
    done(gpus, 8, max_failures=1)
    assert set(gpus.labelled) == {4, 5, 6, 7}


def test_a_worker_that_dies_after_its_start_counts_as_a_failure_of_the_run() -> None:
    ended = run(Gpus(count=1, befalls=[DEAD, DEAD]), 1, max_failures=2)
    assert "workers failed 2 times (run.max_failures)" in str(ended.error)


def given_up(gpu: int) -> str:
    return f"workers died at work 3 times in a row on m, GPU {gpu} ({DEAD}): the run goes on without this place"


@pytest.mark.parametrize("loading", [1.0, 100.0])
@pytest.mark.parametrize("in_flight", [1, 8])
def test_a_gpu_that_dies_at_work_is_given_up_and_nothing_is_lost(loading: float, in_flight: int) -> None:
    gpus = Gpus(count=8, faults={gpu: [loading] for gpu in range(8)}, dead_at_work=frozenset({3}), work_seconds=60.0)
    ended = done(gpus, 8, units=800, units_in_flight=in_flight)
    assert gpus.written_off == set()
    assert set(gpus.labelled) == {0, 1, 2, 4, 5, 6, 7}
    assert gpus.starts.count(3) == 3, "run.attempts"
    assert ended.warnings.count(given_up(3)) == 1
    assert ended.shown[-1].workers == 7


def test_deaths_of_a_place_that_is_given_up_are_few_failures_of_the_run() -> None:
    gpus = Gpus(count=8, dead_at_work=frozenset({1, 3, 6}), work_seconds=60.0)
    ended = done(gpus, 8, units=400, max_failures=13)
    assert gpus.written_off == set()
    assert {given_up(1), given_up(3), given_up(6)} <= set(ended.warnings)


def test_a_worker_of_a_place_that_is_given_up_goes_to_a_free_one() -> None:
    """A run with one worker, which never was at another place before."""
    gpus = Gpus(count=2, dead_at_work=frozenset({0}))
    done(gpus, 1)
    assert gpus.starts == [0, 0, 0, 1]
    assert gpus.written_off == set()


def test_the_only_place_is_not_given_up() -> None:
    ended = run(Gpus(count=1, dead_at_work=frozenset({0})), 1, max_failures=7)
    assert "workers failed 7 times (run.max_failures)" in str(ended.error)
    assert given_up(0) not in ended.warnings


def test_no_place_is_given_up_where_all_die() -> None:
    """They die at different moments, so that no GPU looks free."""
    gpus = Gpus(count=4, dead_at_work=frozenset(range(4)), faults={gpu: [1.0 + gpu / 10] for gpu in range(4)})
    ended = run(gpus, 4, max_failures=40)
    assert "workers failed 40 times (run.max_failures)" in str(ended.error)
    assert all(gpus.starts.count(gpu) >= 9 for gpu in range(4)), "side by side until the end"


@example(count=2, workers=2, dead={1}, deadly={"u5-2", "u0-0"}, engines=2, in_flight=1, loading=0.1).via(
    "the good GPU is given up for the requests that are left at the end"
)
@example(count=4, workers=4, dead={0}, deadly={"u5-2"}, engines=1, in_flight=1, loading=1.0)
@example(count=1, workers=2, dead=set(), deadly={"u5-2"}, engines=1, in_flight=1, loading=1.0)
@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.sets(st.integers(0, 3)),
    st.sets(st.sampled_from(["u0-0", "u5-2", "u5-3", "u63-1"])),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 8]),
    st.sampled_from([0.1, 7.0, 100.0]),
)
def test_a_run_never_hangs_and_ends_well_where_a_gpu_does_not_die_at_work(
    count: int, workers: int, dead: set[int], deadly: set[str], engines: int, in_flight: int, loading: float
) -> None:
    gpus = Gpus(
        count=count,
        engines=engines,
        dead_at_work=frozenset(dead),
        deadly=frozenset(deadly),
        faults={gpu: [loading] for gpu in range(count)},
    )
    ended = run(gpus, workers, wait_seconds=300, units_in_flight=in_flight)
    if not set(range(count)) <= dead:
        assert ended.error is None
        assert gpus.written_off >= deadly
        assert len(dead) > 1 or gpus.written_off == deadly
    # The other part of a shared GPU counts as a free device, though it is the same place.
    if not dead and engines == 1 and workers >= count:
        assert not any("without this place" in warning for warning in ended.warnings)


def test_all_places_bad_before_any_start_end_the_run_with_the_first_cause_and_no_second_try() -> None:
    gpus = Gpus(count=8, faults={gpu: [FULL] for gpu in range(8)})
    ended = run(gpus, 8)
    assert isinstance(ended.error, PlaceError)
    assert str(ended.error) == f"{FULL} (and 7 other workers could not start either)"
    assert sorted(gpus.starts) == list(range(8))
    alone = run(Gpus(count=1, faults={0: [FULL]}), 1)
    assert str(alone.error) == str(FULL)


def test_the_only_worker_tries_other_gpus() -> None:
    """A small run, or the rest of one, needs one worker; Ray gives it the same GPU first every time."""
    gpus = Gpus(count=8, faults={0: [FULL], 1: [FULL]})
    done(gpus, 1)
    assert gpus.starts == [0, 1, 2]
    assert set(gpus.labelled) == {2}


def test_the_only_worker_does_not_try_all_gpus_for_ever() -> None:
    gpus = Gpus(count=8, faults={gpu: [FULL] for gpu in range(8)})
    ended = run(gpus, 1)
    assert str(ended.error) == f"{FULL} (and 2 other workers could not start either)"
    assert gpus.starts == [0, 1, 2], "run.attempts"


@pytest.mark.parametrize("bad", [0, 7])
def test_a_model_or_a_setting_ends_the_run_at_once(bad: int) -> None:
    cause = PolicyError("the policy m cannot be loaded: Model architectures ['X'] are not supported")
    gpus = Gpus(count=8, faults={bad: [cause]})
    ended = run(gpus, 8)
    assert ended.error is cause
    assert len(gpus.starts) == 8


def test_the_last_worker_that_dies_at_its_start_ends_the_run_with_its_cause() -> None:
    ended = run(Gpus(count=1, faults={0: [DEAD]}), 1)
    assert isinstance(ended.error, EngineDied)
    assert "failed 3 times before it had work; last error: a worker died: its process was killed" in str(ended.error)


def test_a_late_load_is_tried_again_and_the_message_names_its_limit() -> None:
    gpus = Gpus(count=2, faults={1: [FOREVER, 1.0]})
    ended = run(gpus, 2, start_timeout_seconds=30)
    assert set(gpus.labelled) == {0, 1}
    assert ended.warnings == [
        "a worker on m, GPU 1 could not start (it did not load the model within run.start_timeout_seconds=30): it is started "
        "again"
    ]


def test_a_late_download_is_tried_again_and_the_message_names_its_limit() -> None:
    gpus = Gpus(count=1, downloads=[FOREVER])
    ended = done(gpus, 1, download_timeout_seconds=40, start_timeout_seconds=5)
    assert "it did not download the model within run.download_timeout_seconds=40" in ended.warnings[0]


def test_a_long_download_is_no_late_load() -> None:
    ended = done(Gpus(count=1, downloads=[1000.0]), 1, start_timeout_seconds=5)
    assert ended.warnings == []
    assert any(status.stage == "downloading the model" for status in ended.shown)


def test_workers_without_resources_are_reported_and_the_others_go_on() -> None:
    """Three workers for two GPUs."""
    ended = done(Gpus(count=2), 3, wait_seconds=30)
    (warning,) = ended.warnings
    assert "1 worker of 3 still got no resources within cluster.wait_seconds=30" in warning


def test_a_run_that_gets_no_resources_ends_with_what_is_there() -> None:
    gpus = Gpus(count=0)
    ended = run(gpus, 2, wait_seconds=30)
    assert isinstance(ended.error, ClusterError)
    assert "no worker got its resources within cluster.wait_seconds=30: each needs 1 GPU, and all are taken" in str(
        ended.error
    )
    assert any(status.stage == "waiting for resources" for status in ended.shown)
    assert ended.shown[-1].device_seconds == 0.0, "nobody used a device"


def test_engines_of_one_gpu_load_one_after_the_other_and_those_of_others_together() -> None:
    shared = Gpus(count=4, engines=2)
    done(shared, 8)
    assert len(shared.starts) == 8
    assert shared.together == 1
    assert set(shared.labelled) == {0, 1, 2, 3}


def test_the_wait_for_another_engine_of_the_gpu_is_not_late() -> None:
    ended = run(Gpus(count=1, engines=4, faults={0: [20.0]}), 4, start_timeout_seconds=30)
    assert ended.warnings == []


def test_a_dead_engine_gives_its_turn_to_the_next() -> None:
    gpus = Gpus(count=1, engines=2, faults={0: [FOREVER, DEAD, 1.0]})
    done(gpus, 2, start_timeout_seconds=30)
    assert gpus.together == 1


faults = st.lists(st.sampled_from([1.0, 50.0, FULL, DEAD, FOREVER]), min_size=1, max_size=4)


@given(st.integers(1, 4), st.integers(1, 4), st.dictionaries(st.integers(0, 3), faults), st.sampled_from([1, 2]))
def test_a_run_ends_well_where_a_place_is_good_and_never_hangs(
    count: int, workers: int, faults: dict[int, list[Any]], engines: int
) -> None:
    gpus = Gpus(count=count, engines=engines, faults={gpu: list(each) for gpu, each in faults.items()})
    ended = run(gpus, workers, wait_seconds=300, start_timeout_seconds=100)
    used = min(count * engines, workers)
    firsts = [faults.get(gpu, []) for gpu in range(-(-used // engines))]
    if any(all(isinstance(one, float) and one < 100 for one in each) for each in firsts):
        assert ended.error is None
    assert gpus.together <= 1


@given(st.booleans(), st.integers(1, 5), st.integers(1, 5))
def test_only_a_place_waits_for_others_and_attempts_are_limited(any_started: bool, failed: int, attempts: int) -> None:
    dead = next_start(DEAD, failed=failed, attempts=attempts, any_started=any_started)
    assert dead is (NextStart.NOW if failed < attempts else NextStart.NEVER)
    full = next_start(FULL, failed=failed, attempts=attempts, any_started=any_started)
    assert full is (dead if any_started else NextStart.LATER)


@given(st.lists(st.text(max_size=2)), st.lists(st.text(max_size=2)), st.integers(1, 5))
def test_warnings_are_shown_once(before: list[str], added: list[str], kept: int) -> None:
    """If texts repeat, some would look like earlier ones."""
    numbered = [f"{number} {text}" for number, text in enumerate([*before, *added])]
    old, new = numbered[: len(before)][-kept:], numbered[-kept:]
    assert list(new_warnings(old, new)) == numbered[len(before) :][-kept:]
