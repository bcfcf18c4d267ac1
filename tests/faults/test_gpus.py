"""Two nodes that claim four GPUs each: which of them workers take. What they would do with them is not tested here."""

from collections.abc import Callable, Iterator

import pytest

from tests.faults.command_line import started
from tests.faults.raylets import Raylets, raylets
from tests.faults.runs import Scene, until

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(240)]

GPUS = ("--num-cpus=8", "--num-gpus=4", '--resources={"accelerator_type:H100": 1}')
SLOW = ("run.unit_problems=1", "policy.lab.tokens_per_second=100")
SECONDS = 60.0


@pytest.fixture(scope="module")
def nodes() -> Iterator[Raylets]:
    with raylets(2, *GPUS) as made:
        yield made


@pytest.mark.parametrize(("workers", "on_each"), [("null", 2), ("2", 1)])
def test_workers_with_two_gpus_each_are_as_many_as_nodes_hold_and_evenly_spread(
    nodes: Raylets, scenes: Callable[..., Scene], workers: str, on_each: int
) -> None:
    def counts() -> list[int]:
        return [len(node.actors()) for node in nodes.others]

    job = started(scenes(), *SLOW, "cluster.gpus_per_worker=2", f"cluster.workers={workers}", cluster=nodes)
    try:
        until(lambda: sum(counts()) >= 2 * on_each, SECONDS)
        assert counts() == [on_each, on_each]
    finally:
        job.end()
        until(lambda: not nodes.actors(), SECONDS)
