"""`Run.grow`: a picker of the product and an object of a user's class, what it returns, and what needs the object."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from pipeline import Run, label, open_run
from pipeline.config.fields import BY_GROUP
from pipeline.config.grow import PickerConfig
from pipeline.core.errors import PluginError, UsageError
from pipeline.pickers.base import Pick, Picker, Problem
from tests.runtime.without_ray import python_without_ray

pytestmark = pytest.mark.slow

ROWS = [{"problem": f"What is {number} + 1?", "answer": str(number + 1)} for number in range(6)]
POLICY: dict[str, Any] = {"kind": "oracle", "oracle": {"world": "tree", "spread": 1.0}}
IN_ROLLOUTS: dict[str, Any] = {"grow.rollouts": 4, "grow.budget_unit": "rollouts", "progress": False}


@dataclass(kw_only=True, slots=True)
class ShallowestConfig(PickerConfig):
    pick: Annotated[str, BY_GROUP] = "shallowest"
    gain: float = 1.0


class Shallowest(Picker):
    """A picker of a user's own."""

    Config = ShallowestConfig
    settings: ShallowestConfig

    def picks(self, problem: Problem) -> Iterator[Pick]:
        nodes = problem.tree.nodes
        for at in sorted(problem.candidates, key=lambda at: (nodes[at].depth, at)):
            yield Pick(at, self.settings.gain / nodes[at].depth)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    sampling = {"sampling.store_tokens": True, "sampling.rollouts": 4, "sampling.solutions": 2, "run.report": False}
    with python_without_ray():
        yield label(ROWS, policy=POLICY, estimator="fixed", run_dir=tmp_path / "run", progress=False, **sampling)


def test_a_run_grows_by_a_picker_of_ours_and_goes_on(run: Run) -> None:
    before = run.labels()
    counts = run.grow(40, pick="errors", **IN_ROLLOUTS)
    assert 0 < counts.rollouts == 4 * counts.promoted <= 40
    assert run.labels()["grown"].sum() == counts.promoted
    assert run.labels().height == before.height + counts.promoted
    assert run.grow(40, pick="errors", **IN_ROLLOUTS) == counts
    more = run.grow(80, pick={"pick": "pairs", "per_branch": 2}, **IN_ROLLOUTS)
    assert counts.rollouts < more.rollouts <= 80
    assert run.audit().sound
    with pytest.raises(UsageError, match=r"grow\.budget=3 rollouts is less than one prefix costs"):
        run.grow(3, **IN_ROLLOUTS)


def test_an_object_is_a_picker(run: Run) -> None:
    counts = run.grow(40, pick=Shallowest(ShallowestConfig(gain=2.0)), **IN_ROLLOUTS)
    grown = run.labels().filter("grown")
    assert grown.height == counts.promoted == 10
    assert set(grown["steps"].list.len()) <= {1, 2}
    assert run.audit().sound
    assert open_run(run.run_dir).audit().sound
    with pytest.raises(PluginError, match=r"picker shallowest of object .*Shallowest .* the gain -[0-9.]+"):
        run.grow(80, pick=Shallowest(ShallowestConfig(gain=-2.0)), **IN_ROLLOUTS)


def test_what_is_no_picker_is_refused(run: Run) -> None:
    with pytest.raises(UsageError, match="there is no such option"):
        run.grow(40, pick="erors", **IN_ROLLOUTS)
    with pytest.raises(UsageError, match="grow: give a name, a dict of settings, or an object"):
        run.grow(40, pick=object(), **IN_ROLLOUTS)  # type: ignore[arg-type]
