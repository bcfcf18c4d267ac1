"""Which trials of a run are fair, and that fair ones are unbiased: against the exact values of the oracle's tree world."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.engines.oracle_tree import Shape, Tree
from pipeline.estimators.base import Estimator
from pipeline.estimators.first_success import FirstSuccess
from pipeline.estimators.registry import ESTIMATORS
from pipeline.storage.local import LocalStorage
from pipeline.storage.stored_run import stored_run
from pipeline.storage.stored_trees import StoredTrees, fair_rounds
from pipeline.trees.tree import Tally, TreeNode
from tests.runtime.adaptive import settings
from tests.runtime.in_process import label_in_process
from tests.settings import estimator

pytestmark = pytest.mark.slow

PROBLEMS = 60
LIMIT = 3.5
"""Standard errors that the counts of unbiased trials may be off, all nodes together."""
MANY = 10**6
FEW = 2
Reader = Callable[[TreeNode], Tally]


def finished(folder: Path, *overrides: str) -> StoredTrees:
    """The trees of a run on the oracle's tree world, which has no chain but those that the policy drew."""
    rows = [{"id": str(n), "problem": f"Problem {n}?", "answer": str(n + 5)} for n in range(PROBLEMS)]
    world = ["policy=lab", "policy.oracle.world=tree", "policy.lab.branching=2", "sampling.solutions=2"]
    label_in_process(settings(folder, rows, *world, *overrides))
    storage = LocalStorage(folder / "run")
    return StoredTrees(stored_run(storage))


@dataclass(frozen=True, slots=True)
class Errors:
    """For each problem, the sum of the errors of its nodes. `nodes`: how many have trials. The nodes of a problem share
    rollouts, so that only sums of different problems are independent."""

    sums: list[float]
    nodes: int

    @property
    def off(self) -> float:
        """How far all nodes together are off, in standard errors."""
        return sum(self.sums) / math.sqrt(sum(each * each for each in self.sums))


def errors(stored: StoredTrees, reader: Reader, most: int = MANY, *, labelled: bool = False) -> Errors:
    """The share of correct trials less the exact value, of each node that has 1 to `most` trials and is no labelled prefix, or
    is one (`labelled`).

    Fair trials are unbiased whatever their number is. Where sampling stops at a success, nodes with few trials have too many
    correct ones, and nodes with many too few.
    """
    world = Tree(shape=Shape(branching=2))
    sums, nodes = [], 0
    for _, problem in stored.problems():
        tree, total = problem.tree, 0.0
        for place, node in enumerate(tree.nodes):
            trials = reader(node)
            if node.ended or bool(node.prefix_ids) is not labelled or not 1 <= trials.graded <= most:
                continue
            path = world.path_of(tree.problem_id, tree.steps(place))
            assert path is not None
            total += trials.correct / trials.graded - world.value(tree.problem_id, path)
            nodes += 1
        sums.append(total)
    return Errors(sums, nodes)


@pytest.mark.parametrize(
    ("name", "own", "fair"),
    [
        ("fixed", {}, None),
        ("first_success", {"batch": 1}, 1),
        ("first_success", {"batch": 4}, 0),
        ("bisect", {"batch": 1}, 1),
        ("bisect", {"batch": 4}, 0),
        ("pooled", {}, 1),
    ],
)
def test_an_estimator_has_fair_rounds_as_far_as_it_does_not_look_at_outcomes(
    name: str, own: dict[str, int], fair: int | None
) -> None:
    assert fair_rounds(estimator(name, **own)) == fair


def test_an_estimator_that_says_nothing_of_its_log_has_no_fair_rounds() -> None:
    class Silent(FirstSuccess):
        lacks = Estimator.lacks

    assert fair_rounds(Silent(estimator("first_success").settings)) == 0


def test_every_estimator_of_ours_is_judged() -> None:
    """A new one belongs into the tests of this module."""
    assert set(ESTIMATORS.our_settings()) == {"fixed", "first_success", "pooled", "bisect"}


def test_passes_of_a_run_with_fixed_counts_are_unbiased(tmp_path: Path) -> None:
    stored = finished(tmp_path, "estimator=fixed", "sampling.rollouts=16")
    assert stored.fair is None
    assert abs(errors(stored, lambda node: node.fair_issued, labelled=True).off) < LIMIT
    for most in (FEW, MANY):
        found = errors(stored, lambda node: node.fair_passed, most)
        assert found.nodes > 500
        assert abs(found.off) < LIMIT


def test_later_rounds_of_a_run_that_stops_at_a_success_are_no_fair_trials(tmp_path: Path) -> None:
    """A reader that counts them all is wrong by many standard errors."""
    stored = finished(tmp_path, "estimator=first_success", "sampling.rollouts=16", "estimator.batch=1")
    naive = errors(stored, lambda node: node.issued, labelled=True)
    print(f"all rollouts are off by {naive.off:.1f} standard errors")
    assert naive.off > LIMIT
    assert abs(errors(stored, lambda node: node.fair_issued, labelled=True).off) < LIMIT


def test_a_run_that_stops_others_at_a_success_has_no_fair_trials(tmp_path: Path) -> None:
    stored = finished(tmp_path, "estimator=first_success", "sampling.rollouts=16", "estimator.batch=4")
    assert stored.fair == 0
    assert errors(stored, lambda node: node.fair_passed).nodes == 0


@pytest.mark.parametrize("name", ["pooled", "bisect", "first_success"])
def test_passes_of_first_rounds_are_unbiased(tmp_path: Path, name: str) -> None:
    stored = finished(tmp_path, f"estimator={name}", "sampling.rollouts=16")
    found = errors(stored, lambda node: node.fair_passed)
    assert found.nodes > 50
    assert abs(found.off) < LIMIT
