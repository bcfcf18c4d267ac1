"""Two nodes that claim four GPUs each: which of them workers take. What they would do with them is not tested here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.checkout import stepvalue
from tests.faults.raylets import Raylets, raylets
from tests.faults.runs import Scene, until
from tests.ray_head import TOKEN

pytestmark = [pytest.mark.nightly, pytest.mark.ray, pytest.mark.timeout(240)]

GPUS = ("--num-cpus=8", "--num-gpus=4", '--resources={"accelerator_type:H100": 1}')
SLOW = ("run.unit_problems=1", "run.report=false", "policy.lab.tokens_per_second=100")
SECONDS = 60.0


@pytest.fixture(scope="module")
def nodes() -> Iterator[Raylets]:
    with raylets(2, *GPUS) as made:
        yield made


@contextmanager
def under_way(scene: Scene, nodes: Raylets, *overrides: str) -> Iterator[None]:
    """`label` while it works, and until its workers are gone."""
    where = [f"data.path={scene.data}", f"run_dir={scene.run_dir}", f"cluster.address={nodes.address}"]
    words = ["label", *where, *scene.settings, *SLOW, *overrides]
    process = stepvalue(scene.folder / "label.log", *words, environment=TOKEN)
    try:
        yield
    finally:
        process.kill()
        process.wait()
        until(lambda: not nodes.actors(), SECONDS)


@pytest.mark.parametrize(("workers", "on_each"), [("null", 2), ("2", 1)])
def test_workers_with_two_gpus_each_are_as_many_as_nodes_hold_and_evenly_spread(
    nodes: Raylets, scenes: Callable[..., Scene], workers: str, on_each: int
) -> None:
    def counts() -> list[int]:
        return [len(node.actors()) for node in nodes.others]

    with under_way(scenes(), nodes, "cluster.gpus_per_worker=2", f"cluster.workers={workers}"):
        until(lambda: sum(counts()) >= 2 * on_each, SECONDS)
        assert counts() == [on_each, on_each]
