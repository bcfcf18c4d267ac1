"""The rollout trees of a run directory: which rollouts and verdicts they have, and how a problem is found."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.analysis.relabel import regrade
from pipeline.config.changes import RegradeConfig
from pipeline.core.errors import UsageError
from pipeline.storage.local import LocalStorage
from pipeline.storage.stored_run import stored_run
from pipeline.storage.stored_trees import StoredTrees, _measured_steps
from pipeline.trees.posterior import MeasuredStep
from tests.audit.runs import copied
from tests.runtime.adaptive import settings, sums, table
from tests.runtime.in_process import label_in_process
from tests.settings import GraderChange

PROBLEMS = 5


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of several units. Three chains of each problem begin with the same step."""
    folder = tmp_path_factory.mktemp("finished")
    label_in_process(settings(folder, sums(PROBLEMS, 3), "run.unit_problems=2", "sampling.rollouts=6"))
    return folder


def trees(folder: Path) -> StoredTrees:
    storage = LocalStorage(folder / "run")
    return StoredTrees(stored_run(storage))


def rows(folder: Path) -> list[dict[str, Any]]:
    return table(folder, "labels").to_dicts()


def test_each_problem_of_each_unit_has_its_chains_and_its_rollouts(finished: Path) -> None:
    found = list(trees(finished).problems())
    assert len({unit.unit_id for unit, _ in found}) == 3
    problems = [problem for _, problem in found]
    assert [problem.problem for problem in problems] == [f"What is {n} + {n} + 1?" for n in range(3, 3 + PROBLEMS)]
    assert problems[0].source_ids == ("3-0", "3-1", "3-2")
    assert problems[0].gold_answer == "7"
    rollouts = table(finished, "rollouts")
    assert sum(problem.tree.rollouts for problem in problems) == len(rollouts)
    assert sum(problem.tree.tokens for problem in problems) == rollouts["n_tokens"].sum()


def test_labelled_nodes_say_what_the_labels_say(finished: Path) -> None:
    known = {
        prefix_id: (value, correct, graded, label)
        for row in rows(finished)
        for prefix_id, value, correct, graded, label in zip(
            row["prefix_ids"], row["value"], row["n_correct"], row["n_rollouts"], row["label"], strict=True
        )
    }
    seen = 0
    for _, problem in trees(finished).problems():
        for node in problem.tree.nodes:
            for prefix_id in node.prefix_ids:
                if node.label is None or prefix_id not in known:
                    continue
                seen += 1
                label = node.label
                assert (label.value, label.correct, label.rollouts, label.label) == known[prefix_id]
                if not node.ended:
                    assert (node.issued.correct, node.issued.graded) == (label.correct, label.rollouts)
    assert seen == len(known)


def test_a_problem_is_found_by_its_id_its_text_and_the_ids_of_its_rows(finished: Path) -> None:
    stored = trees(finished)
    row = next(row for row in rows(finished) if row["source_id"] == "5-1")
    for name in (row["problem_id"], "5-1", "5-0", "What is 5 + 5 + 1?"):
        (problem,) = stored.of_problem(name)
        assert problem.tree.problem_id == row["problem_id"]
        assert problem.source_ids == ("5-0", "5-1", "5-2")
        assert len(problem.tree.nodes[0].children) >= 1
    with pytest.raises(
        UsageError, match="has no labelled problem 'nothing': give the id of a row, a problem_id of `labels`"
    ):
        stored.of_problem("nothing")


def test_regraded_verdicts_count(finished: Path, tmp_path: Path) -> None:
    run_dir = copied(finished / "run", tmp_path)
    (tmp_path / "rows.jsonl").write_bytes((finished / "rows.jsonl").read_bytes())
    before = trees(tmp_path).of_problem("3-0")[0].tree
    assert any(node.correct for node in before.nodes)
    regrade(RegradeConfig(run_dir=str(run_dir), grader=GraderChange(answer_pattern="work (is)")))
    after = trees(tmp_path).of_problem("3-0")[0].tree
    new = {row[0]: row[1] for row in table(tmp_path, "verdicts").select("rollout_id", "verdict").rows()}
    log = table(tmp_path, "rollouts").filter(pl.col("problem_id") == after.problem_id)
    correct = sum(new[rollout] == "correct" for rollout in log["rollout_id"])
    assert sum(node.issued.correct for node in after.nodes) == correct
    assert correct < sum(node.issued.correct for node in before.nodes)


def test_a_problem_of_a_grown_input_has_a_tree_for_each_of_its_units(tmp_path: Path) -> None:
    given = sums(2, 2)
    label_in_process(settings(tmp_path, given[:1] + given[2:], "run.unit_problems=1"))
    (tmp_path / "rows.jsonl").unlink()
    label_in_process(settings(tmp_path, given[:1] + given[2:] + given[1:2], "run.unit_problems=1"))
    found = trees(tmp_path).of_problem("3-1")
    assert [problem.source_ids for problem in found] == [("3-0",), ("3-1",)]
    assert len({problem.tree.problem_id for problem in found}) == 1
    assert not {*found[0].tree.nodes[0].prefix_ids} & {*found[1].tree.nodes[0].prefix_ids}


def test_the_strength_is_learned_from_each_prefix_once_with_the_one_before_it(finished: Path) -> None:
    labels = table(finished, "labels")
    names = ["prefix_ids", "n_rollouts", "root_n_rollouts", "n_correct", "root_n_correct"]
    steps = list(_measured_steps(labels.select(names)))
    prefixes = {prefix for row in labels["prefix_ids"].to_list() for prefix in row}
    assert len(steps) == len(prefixes)
    first = labels.row(0, named=True)
    assert steps[0] == MeasuredStep(
        first["root_n_correct"], first["root_n_rollouts"], first["n_correct"][0], first["n_rollouts"][0]
    )
    assert 0.1 <= trees(finished).strength <= 100.0
