"""The rollout tree of a problem in Python: its columns, its outline, and what text of a model cannot do there."""

from pathlib import Path

import polars as pl
import pytest

from pipeline import open_run
from pipeline.core.errors import UsageError
from pipeline.core.shown import MOST_LINES
from pipeline.python.tree import LabelledTree
from pipeline.storage.stored_trees import ProblemTree
from pipeline.trees.tree import StepLabel
from tests.runtime.adaptive import settings, sums
from tests.runtime.in_process import label_in_process
from tests.trees.growing import chain, grown, rollout

COLUMNS = [
    *("unit", "node", "parent", "depth", "step", "ended", "outcome", "value", "value_sd", "unbiased_value", "label"),
    *("posterior_mean", "p_above", "issued_correct", "issued", "passed_correct", "passed", "fair_correct", "fair"),
    *("prefix_ids", "rollout_id", "grown"),
]
HOSTILE = "\x1b[31mred\x1b]0;owned\x07 <script>alert(1)</script>"


def tree_of(*trees: ProblemTree) -> LabelledTree:
    return LabelledTree(trees, threshold=0.5, strength=1.0)


def problem_tree(steps: int = 3, text: str = "step", problem: str = "How\nmany?") -> ProblemTree:
    value = StepLabel(value=0.5, value_sd=0.1, unbiased_value=0.4, correct=2, rollouts=4, label=1)
    log = [rollout("a", "\n".join(f"{text} {at}" for at in range(steps)), number=number) for number in range(2)]
    log.append(rollout("", "a\nother", "incorrect", number=9, round=1))
    tree = grown([chain("a", "end", labels=[StepLabel(), value, StepLabel(value=1.0, label=1)])], log, fair=1)
    return ProblemTree(problem=problem, gold_answer="7", source_ids=("q",), tree=tree)


def test_the_frame_has_labels_and_evidence_of_each_node() -> None:
    nodes = tree_of(problem_tree()).nodes
    assert nodes.columns == COLUMNS
    root, first, end = nodes.rows(named=True)[:3]
    assert (root["parent"], root["step"], root["depth"], root["issued"], root["passed"]) == (None, None, 0, 1, 0)
    assert (first["value"], first["value_sd"], first["unbiased_value"], first["label"]) == (0.5, 0.1, 0.4, 1)
    assert (first["issued_correct"], first["issued"], first["passed_correct"], first["passed"]) == (2, 2, 0, 1)
    assert (first["fair_correct"], first["fair"]) == (2, 2)
    assert (first["prefix_ids"], first["rollout_id"]) == (["a"], "/9")
    assert (end["ended"], end["outcome"]) == (True, True)
    assert end["value"] == end["posterior_mean"] == end["p_above"] == 1.0
    written = nodes.filter(pl.col("step") == "step 1").row(0, named=True)
    assert (written["value"], written["label"], written["prefix_ids"], written["issued"]) == (None, None, [], 0)
    assert 0 < written["posterior_mean"] < 1
    assert (nodes["parent"].drop_nulls() < nodes["node"].filter(nodes["parent"].is_not_null())).all()


def test_nodes_of_several_units_have_their_own_numbers() -> None:
    nodes = tree_of(problem_tree(), problem_tree(2)).nodes
    assert nodes["node"].to_list() == list(range(nodes.height))
    roots = nodes.filter(pl.col("parent").is_null())
    assert roots["unit"].to_list() == [0, 1]
    of_second = nodes.filter((pl.col("unit") == 1) & pl.col("parent").is_not_null())
    assert (of_second["parent"] >= roots["node"][1]).all()


def test_an_outline_shows_values_and_estimates_apart() -> None:
    lines = repr(tree_of(problem_tree())).splitlines()
    assert lines[:2] == ["How many?", "answer 7; 6 steps of 3 rollouts and the chains"]
    assert lines[4] == " 0.50       2/3    a"
    assert lines[5].startswith("~0.")
    assert lines[5].endswith("      step 0")
    assert " 1.00       2/2          step 2  (ends, right)" in lines
    assert " 0.00       0/1      other  (ends, wrong)" in lines


def test_a_large_tree_has_a_short_outline() -> None:
    lines = repr(tree_of(problem_tree(500), problem_tree(500))).splitlines()
    assert len(lines) <= MOST_LINES
    assert lines[-1].startswith("and ")
    assert lines[-1].endswith(" more: `nodes` has all")
    assert repr(tree_of(problem_tree(2, "x" * 10_000))).count("x" * 101) == 0


def test_text_of_a_model_stays_text() -> None:
    found = tree_of(problem_tree(2, HOSTILE, HOSTILE))
    assert "\x1b" not in repr(found)
    assert "\x07" not in repr(found)
    assert "<script>" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()


def test_a_tree_of_a_run_has_the_values_of_its_labels(tmp_path: Path) -> None:
    label_in_process(settings(tmp_path, sums(3, 2), "estimator=fixed", "run.unit_problems=2"))
    run = open_run(tmp_path / "run")
    row = run.labels().row(0, named=True)
    found = run.tree(row["problem_id"])
    assert all(getattr(found, name) == row[name] for name in ("problem", "problem_id", "gold_answer"))
    assert found.source_ids == ("3-0", "3-1")
    by_prefix = found.nodes.explode("prefix_ids").filter(pl.col("prefix_ids").is_in(row["prefix_ids"]))
    assert sorted(by_prefix["value"]) == sorted(row["value"])
    assert run.tree("3-1").nodes.equals(found.nodes)
    assert repr(found).startswith(row["problem"])
    with pytest.raises(UsageError, match="has no labelled problem"):
        run.tree("nothing")
