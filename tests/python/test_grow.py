"""`Run.grow`: a picker of the product and an object of a user's class, what it returns, and what needs the object."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline import Run, label, open_run
from pipeline.core.errors import PluginError, UsageError
from pipeline.examples.picker import Doubtful, DoubtfulConfig
from pipeline.pickers.base import Pick, Problem
from tests.runtime.without_ray import python_without_ray

pytestmark = pytest.mark.slow

ROWS = [{"problem": f"What is {number} + 1?", "answer": str(number + 1)} for number in range(6)]
POLICY: dict[str, Any] = {"kind": "lab", "oracle": {"world": "tree"}, "lab": {"spread": 1.0}}
IN_ROLLOUTS: dict[str, Any] = {"grow.rollouts": 4, "grow.budget_unit": "rollouts", "progress": False}


class Sure(Doubtful):
    """Says that a prefix is worth less than nothing."""

    def picks(self, problem: Problem) -> Iterator[Pick]:
        return (Pick(each.node, -1.0) for each in Doubtful.picks(self, problem))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    sampling = {"sampling.store_tokens": True, "sampling.rollouts": 4, "sampling.solutions": 2, "run.report": False}
    with python_without_ray():
        run_dir = tmp_path_factory.mktemp("to-grow") / "run"
        return label(ROWS, policy=POLICY, estimator="fixed", run_dir=run_dir, progress=False, **sampling)


@pytest.fixture
def run(small: Run, tmp_path: Path) -> Run:
    return open_run(shutil.copytree(small.run_dir, tmp_path / "run"))


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
    counts = run.grow(40, pick=Doubtful(DoubtfulConfig(least=0.2)), **IN_ROLLOUTS)
    grown = run.labels().filter("grown")
    assert 0 < grown.height == counts.promoted <= 10
    assert run.audit().sound
    assert open_run(run.run_dir).audit().sound
    with pytest.raises(PluginError, match=r"picker doubtful of object .*Sure .* the gain -[0-9.]+"):
        run.grow(80, pick=Sure(DoubtfulConfig()), **IN_ROLLOUTS)


def test_what_is_no_picker_is_refused(run: Run) -> None:
    with pytest.raises(UsageError, match="there is no such option"):
        run.grow(40, pick="erors", **IN_ROLLOUTS)
    with pytest.raises(UsageError, match="grow: give a name, a dict of settings, or an object"):
        run.grow(40, pick=object(), **IN_ROLLOUTS)  # type: ignore[arg-type]
