"""Labels of chains that the oracle samples in its tree world estimate exactly the values of the tree."""

from pathlib import Path

import pytest
from scipy.stats import chi2

from pipeline.core.records import Problem
from pipeline.engines.oracle_tree import Shape, Tree
from tests.runtime.adaptive import labels, proved, settings
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

ROLLOUTS = 64
RARE = 1e-6


def labelled(folder: Path, *overrides: str) -> None:
    rows = [{"id": str(number), "problem": f"Problem {number}?", "answer": str(number + 5)} for number in range(40)]
    world = ["policy=lab", "policy.oracle.world=tree", "policy.lab.early=0.1", "sampling.solutions=2"]
    label_in_process(settings(folder, rows, *world, f"sampling.rollouts={ROLLOUTS}", *overrides))


def misfit(folder: Path) -> float:
    """The probability that values differ from those of the tree as much as these do (chi-square over distinct prefixes)."""
    tree = Tree(shape=Shape(early=0.1))
    squares: dict[str, float] = {}
    for row in labels(folder).iter_rows(named=True):
        problem = Problem(problem_id=row["problem_id"], text=row["problem"], golds=(row["gold_answer"],))
        path = tree.path_of(problem.problem_id, row["steps"])
        assert path is not None
        assert row["outcome"] == (tree.value(problem.problem_id, path) == 1.0)
        found = [row["root_value"], *row["value"]]
        assert found[-1] == row["outcome"]
        for depth, prefix_id in enumerate((row["root_prefix_id"], *row["prefix_ids"][:-1])):
            value = tree.value(problem.problem_id, path[:depth])
            if value in (0.0, 1.0):
                assert found[depth] == value
            else:
                squares[prefix_id] = (found[depth] - value) ** 2 * ROLLOUTS / (value * (1 - value))
    assert len(squares) > 200
    return float(chi2.sf(sum(squares.values()), len(squares)))


def test_values_are_those_of_the_tree(tmp_path: Path) -> None:
    labelled(tmp_path, "estimator=fixed")
    assert misfit(tmp_path) > RARE
    proved(tmp_path)


@pytest.mark.parametrize("name", ["pooled", "first_success"])
def test_estimators_work_on_the_tree(tmp_path: Path, name: str) -> None:
    labelled(tmp_path, f"estimator={name}")
    proved(tmp_path)
