"""Exports from rollout trees of a real run whose values are all known: the tree world of the oracle."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from pipeline.core.errors import InputError, UsageError
from pipeline.core.registry import GivenObject
from pipeline.data.problems import in_validation
from pipeline.engines.oracle_tree import Tree
from pipeline.export.base import Exporter, ExportRow, Plan, labels_as_they_are
from pipeline.export.formats.base import Encoder, Marks, Row
from pipeline.export.formats.ppm import TEMPLATE, ppm_token_errors
from pipeline.export.registry import EXPORTS, plan_of, refuse_ineffective
from pipeline.export.result import LEFT_OUT, ExportResult
from pipeline.export.settings import (
    Balance,
    DecontaminateConfig,
    ExportConfig,
    FileType,
    InvalidChains,
    PairReader,
    PairSiblings,
    PairSpan,
    PpmConfig,
    PreferenceConfig,
    UncertainSteps,
)
from pipeline.export.targets import LabelRow
from pipeline.storage.stored_trees import ProblemTree
from pipeline.trees.posterior import Posterior
from tests.audit.runs import labels
from tests.export.encoders import Characters
from tests.export.rows import exported as any_exported
from tests.export.rows import lines
from tests.export.rows import settings as asked
from tests.runtime.adaptive import settings
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

PROBLEMS = 10
WORLD = Tree()
ROLLOUTS = PreferenceConfig(siblings=PairSiblings.rollouts, span=PairSpan.step, reader=PairReader.step_dpo)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10 problems with two sampled chains each and 32 rollouts of each prefix, in units of five problems."""
    folder = tmp_path_factory.mktemp("run")
    rows = [{"id": f"{n}", "problem": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(10, 10 + PROBLEMS)]
    asked_for = ["estimator=fixed", "sampling.rollouts=32", "sampling.solutions=2", "run.unit_problems=5"]
    label_in_process(settings(folder, rows, "policy.oracle.world=tree", *asked_for))
    return folder / "run"


def exported(run_dir: Path, out: Path, layout: str = "preference", **changes: Any) -> ExportResult:
    given = {"own": ROLLOUTS} if layout == "preference" else {}
    return any_exported(run_dir, out, layout, **{**given, **changes})


def true_value(problem_id: str, steps: Sequence[str]) -> float:
    path = WORLD.path_of(problem_id, steps)
    assert path is not None, steps
    return WORLD.value(problem_id, path)


def test_chosen_steps_are_worth_more_than_rejected_ones(run_dir: Path, tmp_path: Path) -> None:
    done = exported(run_dir, tmp_path / "out", own=ROLLOUTS)
    pairs = lines(tmp_path / "out/train.jsonl")
    assert len(pairs) == done.files["train.jsonl"].rows > 100
    labelled = {(row["problem"], tuple(row["steps"][: n + 1])) for row in labels(run_dir).to_dicts() for n in range(6)}
    wrong = unlabelled = 0
    for pair in pairs:
        before = pair["initial_reason_steps"].splitlines()
        good, bad = ([*before, pair[role]] for role in ("chosen", "rejected"))
        wrong += true_value(pair["problem_id"], good) <= true_value(pair["problem_id"], bad)
        unlabelled += not {(pair["prompt"], tuple(good)), (pair["prompt"], tuple(bad))} & labelled
        if pair["chosen_rollouts"] >= 30:
            assert abs(pair["chosen_value"] - true_value(pair["problem_id"], good)) < 0.35
        assert pair["certainty"] >= 0.9
        assert pair["step"] == len(good)
        assert pair["margin"] == pair["chosen_value"] - pair["rejected_value"]
    assert wrong <= 0.05 * len(pairs), "at least 0.9 of them, and 0.95 here, are the right way round"
    assert unlabelled > 10, "steps that no label has are paired too"


def test_more_certainty_or_margin_is_fewer_pairs(run_dir: Path, tmp_path: Path) -> None:
    counts = []
    for number, (certainty, margin) in enumerate(((0.7, 0.0), (0.9, 0.0), (0.99, 0.0), (0.99, 0.6))):
        own = PreferenceConfig(
            siblings=PairSiblings.rollouts, span=PairSpan.step, pairs_per_branch=99, certainty=certainty, margin=margin
        )
        done = exported(run_dir, tmp_path / f"{number}", own=own)
        counts.append(done.files["train.jsonl"].rows)
        assert all(pair["margin"] >= margin for pair in lines(tmp_path / f"{number}/train.jsonl"))
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == len(counts)


def test_the_rest_of_a_pair_is_that_of_a_right_and_of_a_wrong_chain(run_dir: Path, tmp_path: Path) -> None:
    exported(run_dir, tmp_path / "out", own=PreferenceConfig(siblings=PairSiblings.rollouts))
    pairs = lines(tmp_path / "out/train.jsonl")
    for pair in pairs:
        before = pair["prompt"].removeprefix(pair["problem"] + "\n").splitlines()
        for role, outcome in (("chosen", 1.0), ("rejected", 0.0)):
            assert true_value(pair["problem_id"], [*before, *pair[role].splitlines()]) == outcome
    assert len(pairs) > 50


def test_problems_without_pairs_are_left_out_with_all_their_chains(run_dir: Path, tmp_path: Path) -> None:
    own = PreferenceConfig(siblings=PairSiblings.rollouts, certainty=1.0, margin=0.97, span=PairSpan.step)
    done = exported(run_dir, tmp_path / "out", own=own)
    with_pairs = {pair["problem_id"] for pair in lines(tmp_path / "out/train.jsonl")}
    gone = {left["chain_id"]: left["kind"] for left in lines(tmp_path / "out" / LEFT_OUT)}
    expected = labels(run_dir).filter(~pl.col("problem_id").is_in(list(with_pairs)))["chain_id"].to_list()
    assert set(gone) == set(expected)
    assert 0 < len(gone) < done.chains
    assert set(gone.values()) == {"no_pair"}


@pytest.mark.parametrize("layout", ["preference", "ppm", "omegaprm"])
def test_a_problem_whose_chains_are_all_left_out_has_no_rows(layout: str, run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "listed.txt").write_text("What is 12 + 12?\nWhat is 13 + 13?\n")
    listed = DecontaminateConfig(paths=[str(tmp_path / "listed.txt")])
    asked_for: list[tuple[str, dict[str, Any], pl.Expr]] = [
        ("low_root_value", {"min_root_value": 0.4}, pl.col("root_value") < 0.4),
        ("contaminated", {"decontaminate": listed}, pl.col("problem").str.contains(r"12 \+ 12|13 \+ 13")),
    ]
    for kind, settings_of_choice, chosen in asked_for:
        done = exported(run_dir, tmp_path / kind, layout, **settings_of_choice)
        gone = labels(run_dir).filter(chosen)
        assert gone.height == done.left_out[kind].count > 2
        text = (tmp_path / kind / "train.jsonl").read_text()
        assert not [problem for problem in gone["problem"].unique() if problem in text]


def test_a_chain_that_is_left_out_gives_no_steps_of_its_own(run_dir: Path, tmp_path: Path) -> None:
    """Rollouts of prefixes that it alone has are in no tree either."""
    kept = labels(run_dir).filter(pl.col("p_outcome") >= 0.5)
    exported(run_dir, tmp_path / "out", "omegaprm", min_p_outcome=0.5)
    written = {row["question"]: row["reasoning_steps"] for row in lines(tmp_path / "out/train.jsonl")}
    assert written.keys() == set(kept["problem"])
    exported(run_dir, tmp_path / "all", "omegaprm")
    every = {row["question"]: row["reasoning_steps"] for row in lines(tmp_path / "all/train.jsonl")}
    both = {problem for problem, count in kept.group_by("problem").len().rows() if count == 2}
    assert both
    assert set(written) - both
    for problem, tree in written.items():
        assert (tree == every[problem]) is (problem in both)
        assert size(tree) <= size(every[problem])


def size(node: dict[str, Any]) -> int:
    return 1 + sum(size(child) for child in node["children"])


@pytest.mark.parametrize("layout", ["preference", "ppm", "omegaprm"])
def test_problems_are_split_whole(layout: str, run_dir: Path, tmp_path: Path) -> None:
    exported(run_dir, tmp_path / "out", layout, validation=0.4)
    train, validation = ((tmp_path / f"out/{split}.jsonl").read_text() for split in ("train", "validation"))
    for problem in labels(run_dir)["problem"].unique():
        held_out = in_validation(problem, 0.4, 0)
        assert problem not in (train if held_out else validation)
        # The policy is always right or always wrong at some problems, which have no pairs.
        assert layout != "omegaprm" or problem in (validation if held_out else train)


def test_trees_are_the_same_in_each_kind_of_file(run_dir: Path, tmp_path: Path) -> None:
    exported(run_dir, tmp_path / "tree-lines", "omegaprm")
    exported(run_dir, tmp_path / "tree-array", "omegaprm", file=FileType.json)
    array = json.loads((tmp_path / "tree-array/train.json").read_text())
    assert array == lines(tmp_path / "tree-lines/train.jsonl")


def test_trees_have_what_openr_reads(run_dir: Path, tmp_path: Path) -> None:
    done = exported(run_dir, tmp_path / "out", "omegaprm")
    written = lines(tmp_path / "out/train.jsonl")
    assert len(written) == PROBLEMS
    assert not done.left_out
    rows = labels(run_dir)
    problem_ids = dict(rows.select("problem", "problem_id").rows())
    for row in written:
        assert row.keys() == {"question", "final_answer", "reasoning_steps"}
        root = row["reasoning_steps"]
        assert root["text"] == row["question"]
        _check(root, problem_ids[row["question"]], [])
    for chain in rows.iter_rows(named=True):
        node = next(row["reasoning_steps"] for row in written if row["question"] == chain["problem"])
        assert node["mc_value"] == chain["root_n_correct"] / chain["root_n_rollouts"]
        for step, correct, graded in zip(chain["steps"], chain["n_correct"], chain["n_rollouts"], strict=True):
            (node,) = (child for child in node["children"] if child["text"] == step)
            if graded:
                assert node["mc_value"] == correct / graded
        assert node["mc_value"] == float(chain["outcome"])


def _check(node: dict[str, Any], problem_id: str, steps: list[str]) -> None:
    assert node.keys() == {"text", "mc_value", "children"}
    assert 0 <= node["mc_value"] <= 1
    for child in node["children"]:
        here = [*steps, child["text"]]
        if not child["children"] and len(here) == 6:
            assert child["mc_value"] == true_value(problem_id, here)
        _check(child, problem_id, here)


def test_the_process_preference_model_scores_the_end_of_each_step(run_dir: Path, tmp_path: Path) -> None:
    """Source: rStar `train/rm.py`: prompt and step are encoded apart and joined; the score is read at the last token."""
    exported(run_dir, tmp_path / "out", "ppm")
    pairs = lines(tmp_path / "out/train.jsonl")
    assert len(pairs) > 30
    encoder = Characters()
    problems = dict(labels(run_dir).select("problem", "problem_id").rows())
    wrong = 0
    for pair in pairs:
        assert pair.keys() == {"prompt", "pos", "neg", "pos_count", "neg_count"}
        (problem,) = (
            problem for problem in problems if pair["prompt"].startswith(TEMPLATE.replace("{problem}", problem))
        )
        before = steps_in(pair["prompt"].removeprefix(TEMPLATE.replace("{problem}", problem)))
        for side in ("pos", "neg"):
            ids = encoder.ids(pair["prompt"]) + encoder.ids(pair[side])
            assert ids == encoder.ids(pair["prompt"] + pair[side])
            assert ids[-13:] == encoder.ids("<end_of_step>")
        values = [true_value(problems[problem], [*before, *steps_in(pair[side])]) for side in ("pos", "neg")]
        wrong += values[0] <= values[1]
    assert wrong <= 0.05 * len(pairs)


def steps_in(text: str) -> list[str]:
    return [step.strip() for step in text.split("<end_of_step>") if step.strip()]


def test_what_the_process_preference_model_would_misread_is_reported(run_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains the mark 'branch'"):
        exported(run_dir, tmp_path / "out", "ppm", placeholder="branch")
    row: Row = {"prompt": "Q?", "pos": "abc", "neg": "d"}
    (offence,) = ppm_token_errors(row, Characters(), 4)
    assert (offence.kind, offence.fatal) == ("end_lost", False)
    assert "prompt and pos have 5 tokens" in offence.detail
    assert not list(ppm_token_errors(row, Characters(), 5))


def test_a_template_stands_before_the_first_step(run_dir: Path, tmp_path: Path) -> None:
    exported(run_dir, tmp_path / "out", "ppm", own=PpmConfig(template="Q: {problem}\\n"))
    problems = set(labels(run_dir)["problem"])
    for pair in lines(tmp_path / "out/train.jsonl"):
        first, second, *_ = f"{pair['prompt']}{pair['pos']}".split("\n\n")
        assert first.removeprefix("Q: ").rstrip() in problems
        assert second.startswith("\nStep 1: ") or second.startswith("Step 1: ")


def test_a_separator_within_a_step_is_reported_and_its_pair_left_out(run_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"misread .* separator_in_step .*step \d of the \w+ chain contains the separator"
    ):
        exported(run_dir, tmp_path / "out", separator=" branch b")
    done = exported(run_dir, tmp_path / "out", separator=" branch b", invalid=InvalidChains.drop)
    assert done.left_out["separator_in_step"].count > 0
    assert all(" branch b" not in pair["chosen"] for pair in lines(tmp_path / "out/train.jsonl"))


@pytest.mark.parametrize(
    ("layout", "changes", "message"),
    [
        ("preference", {"uncertain": UncertainSteps.cut}, "uncertain: format=preference"),
        ("preference", {"balance": Balance.steps}, "balance=steps: every pair has"),
        ("preference", {"placeholder": "x"}, "format=preference has no placeholder"),
        ("preference", {"own": PreferenceConfig(certainty=0.8)}, "preference.certainty: pairs of chains have none"),
        ("preference", {"own": ROLLOUTS, "threshold": 0.5}, "threshold: rows of rollout trees"),
        ("preference", {"own": ROLLOUTS, "balance": Balance.steps}, "balance=steps: every pair has"),
        ("ppm", {"balance": Balance.chains}, "balance=chains: every pair has"),
        ("ppm", {"after_error": True}, "after_error: format=ppm"),
        ("omegaprm", {"balance": Balance.chains}, "balance=chains: a tree has"),
        ("omegaprm", {"file": FileType.parquet}, "a tree has no columns"),
        ("omegaprm", {"separator": "x"}, "separator: format=omegaprm holds trees"),
        ("omegaprm", {"threshold": 0.5}, "threshold: trees have values"),
    ],
)
def test_settings_that_mean_nothing_for_pairs_or_trees_are_refused(
    layout: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):  # noqa: PT012  # either refuses it
        refuse_ineffective(asked(layout, **changes))
        plan_of(asked(layout, **changes), None)


def test_a_template_needs_a_place_for_the_problem() -> None:
    with pytest.raises(ValueError, match=r"must hold \{problem\} once"):
        PpmConfig(template="Solve it.").check()


class Sizes(Exporter):
    """A format of somebody else that asks for trees: how many nodes the tree of a problem has."""

    def plan(self, config: ExportConfig, encoder: Encoder | None) -> Plan:
        columns: list[tuple[str, pa.DataType]] = [("problem", pa.string()), ("nodes", pa.int64())]
        return Plan(of_trees=self._rows, schema=pa.schema(columns), file=FileType.jsonl, marks=Marks())

    def _rows(self, chains: Sequence[LabelRow], tree: ProblemTree, values: Sequence[Posterior]) -> Iterator[ExportRow]:
        assert len(values) == len(tree.tree.nodes)
        yield ExportRow(chain=chains[0], row={"problem": tree.problem, "nodes": len(values)})


def test_a_format_of_somebody_else_may_ask_for_trees(run_dir: Path, tmp_path: Path) -> None:
    sizes = Sizes()
    given = GivenObject(made=sizes, loaded=sizes, make=lambda _: sizes, where="tests:Sizes", code="0")
    with EXPORTS.offer("sizes", given):
        exported(run_dir, tmp_path / "out", "sizes")
    exported(run_dir, tmp_path / "trees", "omegaprm")
    trees = {row["question"]: size(row["reasoning_steps"]) for row in lines(tmp_path / "trees/train.jsonl")}
    assert {row["problem"]: row["nodes"] for row in lines(tmp_path / "out/train.jsonl")} == trees


def test_a_plan_makes_rows_in_one_way() -> None:
    plan = plan_of(asked("preference", own=ROLLOUTS), None)
    for makers in ({"of_trees": None}, {"make": labels_as_they_are}):
        with pytest.raises(ValueError, match="by make or by of_trees"):
            replace(plan, **makers)
