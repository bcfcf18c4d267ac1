"""`search`: every problem is searched once, what it says is true in the tree world, and a later start does what is new."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.config.search import SearchRunConfig
from pipeline.core import table as core_table
from pipeline.core.errors import PluginError, RunConflict, UsageError
from pipeline.core.records import Problem
from pipeline.core.registry import GivenObject
from pipeline.engines.oracle import TOKENS_PER_STEP
from pipeline.engines.oracle_tree import Tree
from pipeline.runtime.chain_run.estimate import estimate
from pipeline.runtime.searching.task import SearchTask
from pipeline.scorers.oracle import logit
from pipeline.scorers.readouts import sigmoid
from pipeline.searches.base import WHOLE, Found, Node, Sample, Score, Search, Steps, Task, Together, sample, together
from pipeline.searches.registry import SEARCHES as INSTALLED
from tests.runtime.scoring.test_score_run import squared
from tests.runtime.searching.tables import (
    CANDIDATES,
    METHODS,
    SAMPLES,
    SEARCHES,
    STEP_SCORES,
    TABLES,
    assert_alike,
    tables,
)
from tests.searches.runs import Row, search_in, searched, settings, sums

pytestmark = pytest.mark.slow

PROBLEMS = 5
PERFECT = "scorer.oracle.auc=1"
"""Scores are the true values."""
SMALL = ("search.n=4", "run.unit_problems=2", "run.progress_seconds=0.05", "run.attempts=1", PERFECT)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A finished run of each method."""
    folder = tmp_path_factory.mktemp("methods")
    return {method: search_in(folder / method, sums(PROBLEMS), f"search={method}", *SMALL) for method in METHODS}


def is_sound(run_dir: Path) -> bool:
    """Whether an audit, which searches again with the log, finds the tables that are stored."""
    report = audit(AuditConfig(run_dir=str(run_dir)))
    assert not report.findings
    return bool(report.sound)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_searches_every_problem_and_its_log_says_the_same(method: str, runs: dict[str, Path]) -> None:
    found = tables(runs[method])
    assert is_sound(runs[method])
    assert found[SEARCHES]["row"].to_list() == list(range(PROBLEMS))
    for name in TABLES:
        if found[name].height:
            assert found[name].columns == core_table.TABLES[name].schema.names
    assert (found[STEP_SCORES].height == 0) == (method == "majority")
    chosen = found[CANDIDATES].filter("chosen")
    assert chosen["row"].to_list() == list(range(PROBLEMS))
    assert chosen["final_answer"].to_list() == found[SEARCHES]["final_answer"].to_list()
    assert found[SEARCHES]["policy_tokens"].sum() == found[SAMPLES]["n_tokens"].sum()
    if method != "majority":
        assert found[SEARCHES]["scorer_computed"].sum() == found[STEP_SCORES]["n_computed"].sum()


@pytest.mark.parametrize("method", METHODS)
def test_what_a_search_says_is_true_in_the_tree_world(method: str, runs: dict[str, Path]) -> None:
    """Steps are those of the tree, scores of an AUC of 1 are its values, and verdicts those of its ends."""
    tree = Tree(width=TOKENS_PER_STEP)
    rights = 0
    for row in tables(runs[method])[CANDIDATES].iter_rows(named=True):
        problem = Problem(problem_id=row["problem_id"], text=row["problem"], golds=(row["gold_answer"],))
        path = tree.path_of(problem.problem_id, row["steps"])
        assert path is not None
        assert tree.children(problem.problem_id, path) == (), "a candidate is a whole chain"
        assert row["final_answer"] == tree.answer(problem, path)
        right = tree.value(problem.problem_id, path) == 1.0
        assert (row["verdict"] == "correct", row["outcome"]) == (right, right)
        rights += right
        if method != "majority":
            values = [tree.value(problem.problem_id, path[: at + 1]) for at in range(len(path))]
            assert row["step_scores"] == pytest.approx([sigmoid(logit(value)) for value in values])
    assert rights


def test_tokens_are_those_that_the_policy_wrote(runs: dict[str, Path]) -> None:
    """A byte is a token of the oracle: whole chains have as many as their steps."""
    found = tables(runs["best_of_n"])
    samples = found[SAMPLES]
    assert samples["n_tokens"].to_list() == [len(text.encode()) for text in samples["text"]]
    assert found[CANDIDATES]["policy_tokens"].sum() == samples["n_tokens"].sum()
    assert (samples["steps"] == WHOLE).all()
    beam = tables(runs["beam"])
    assert beam[SAMPLES]["n_tokens"].to_list() == [len(text.encode()) for text in beam[SAMPLES]["text"]]
    # The oracle's scorer computes the beginning that it has seen once.
    computed, read = (sum(beam[STEP_SCORES][name].to_list()) for name in ("n_computed", "n_tokens"))
    assert 0 < computed < 0.6 * read


def test_an_input_that_lacks_a_searched_problem_is_refused(tmp_path: Path) -> None:
    run_dir = search_in(tmp_path, sums(3), "search=beam", *SMALL)
    before = tables(run_dir)
    said = r"has searches of other problems: problem \w+ is not in the input any more; choose another run_dir"
    with pytest.raises(RunConflict, match=said):
        search_in(tmp_path, sums(3)[1:], "search=beam", *SMALL)
    assert_alike(tables(run_dir), before)


def test_problems_without_a_known_answer_are_searched_and_nothing_is_claimed(tmp_path: Path) -> None:
    rows = [*sums(2, known=False), *sums(4)[2:], {"problem": "What is x?", "answer": "\\frac{"}]
    run_dir = search_in(tmp_path, rows, "search=weighted", *SMALL)
    found = tables(run_dir)[SEARCHES]
    assert found["gold_answer"].to_list() == [None, None, "6", "8", "\\frac{"], "an answer that cannot be read is named"
    unknown = pl.col("row").is_in([0, 1, 4])
    assert found.filter(unknown)["verdict"].null_count() == 3
    assert found.filter(unknown)["outcome"].null_count() == 3
    assert found["final_answer"].null_count() == 0
    assert found.filter(~unknown)["verdict"].null_count() == 0
    assert is_sound(run_dir)


def given(number: int, *steps: str) -> Row:
    return {"problem": f"What is {number} + {number}?", "answer": str(2 * number), "steps": list(steps)}


def test_a_chain_of_the_input_is_written_again(tmp_path: Path) -> None:
    """Rows with a chain each; two of one problem, and one that has more steps than a chain may have."""
    tree = [f"Step {number}: branch a.".ljust(19, ".") for number in range(1, 6)]
    rows = [
        given(1, *tree, "So it is 9.\nThe answer is 9."),
        given(1, tree[0], "The answer is 2."),
        given(2, *[f"Line {number}." for number in range(12)], "The answer is 3."),
        *sums(3)[2:],
    ]
    run_dir = search_in(
        tmp_path, rows, "search=regenerate", *SMALL, "search.chains=1", "search.max_steps=8", "search.start=weakest"
    )
    found = tables(run_dir)
    assert found[SEARCHES].height == 4
    first = found[CANDIDATES].filter(pl.col("candidate") == 0)
    assert first["final_answer"].to_list()[:3] == ["9", "2", "3"], "the input's own chain is the first candidate"
    assert first["outcome"].to_list()[:3] == [False, True, False]
    assert first["verdict"].to_list()[:3] == ["incorrect", "correct", "incorrect"]
    assert first["policy_tokens"].to_list()[:3] == [0, 0, 0]
    written = found[SAMPLES].filter(pl.col("row") == 0)
    assert written.height
    assert set(written["number"]) <= set(range(6)), "it goes on after steps of the chain"
    # Rows of one problem are independent: other texts are drawn.
    texts = [set(found[SAMPLES].filter((pl.col("row") == row) & (pl.col("number") == 0))["text"]) for row in (0, 1)]
    assert not texts[0] or texts[0] != texts[1]
    # After the eighth step nothing is written, and the chain that the input has is not cut.
    cut = found[CANDIDATES].filter((pl.col("row") == 2) & pl.col("cut"))
    assert all(len(steps) <= 12 for steps in cut["steps"])
    assert is_sound(run_dir)


@pytest.mark.parametrize(
    ("method", "splitter", "steps"),
    [
        ("beam", "whole", 1),
        ("beam", "blank_line", 1),
        ("beam", "step_label", 6),
        ("best_of_n", "whole", 1),
        ("best_of_n", "sentence", 7),
    ],
)
def test_other_splitters_have_other_steps(method: str, splitter: str, steps: int, tmp_path: Path) -> None:
    run_dir = search_in(tmp_path, sums(2), f"search={method}", f"data.splitter={splitter}", *SMALL)
    found = tables(run_dir)
    assert {len(each) for each in found[CANDIDATES]["steps"]} == {steps}
    assert found[SEARCHES]["final_answer"].null_count() == 0
    assert is_sound(run_dir)


def test_chains_that_never_end_are_cut_and_said_to_be(tmp_path: Path) -> None:
    for setting, finish in (
        ("search.max_steps=3", "length"),
        ("sampling.max_tokens=50", "length"),
        ("policy.max_model_len=120", "length"),
    ):
        folder = tmp_path / setting.split("=")[0].replace(".", "_")
        run_dir = search_in(folder, sums(2), "search=beam", *SMALL, setting)
        found = tables(run_dir)
        assert found[CANDIDATES]["cut"].all()
        assert set(found[SAMPLES].filter("ended")["finish"]) == {finish}
        assert found[SEARCHES]["chosen"].null_count() == 0
        assert is_sound(run_dir)


def test_a_problem_that_leaves_no_place_for_a_step_has_no_chain(tmp_path: Path) -> None:
    run_dir = search_in(tmp_path, sums(2), "search=beam", *SMALL, "policy.max_model_len=20")
    found = tables(run_dir)
    assert set(found[SAMPLES]["finish"]) == {"too_long"}
    assert found[SEARCHES]["policy_tokens"].to_list() == [0, 0]
    assert (found[SEARCHES]["score"].null_count(), found[STEP_SCORES].height) == (2, 0)
    assert is_sound(run_dir)


@pytest.mark.parametrize("method", METHODS)
def test_prefixes_without_a_score_rank_last(method: str, tmp_path: Path) -> None:
    unreadable = "scorer.lab.unreadable"
    run_dir = search_in(tmp_path / "some", sums(3), f"search={method}", *SMALL, f"{unreadable}=0.4")
    found = tables(run_dir)
    if method != "majority":
        scores = found[STEP_SCORES]
        assert 0 < scores["score"].null_count() < scores.height
        assert set(scores.filter(pl.col("score").is_null())["fault"]) == {"unreadable"}
        assert found[SEARCHES]["unscored"].sum() == scores["score"].null_count()
    assert found[SEARCHES]["chosen"].null_count() == 0
    assert is_sound(run_dir)
    run_dir = search_in(tmp_path / "all", sums(2), f"search={method}", *SMALL, f"{unreadable}=1")
    found = tables(run_dir)
    assert found[SEARCHES]["chosen"].null_count() == 0, "without any score, there still is a choice"
    assert found[SEARCHES]["score"].null_count() == 2
    assert is_sound(run_dir)


def test_a_method_without_scores_loads_no_scorer(tmp_path: Path) -> None:
    """The scorer's model is not there, and nobody minds."""
    words = ("scorer=qwen", "scorer.model=/there/is/none", "search=majority", "policy=oracle", *SMALL)
    (tmp_path / "run").mkdir()
    config = settings(tmp_path, sums(2))
    data = tmp_path / "rows.jsonl"
    from pipeline.cli.compose import compose
    from pipeline.cli.search import SEARCH

    found = compose(SEARCH, [f"data.path={data}", f"run_dir={config.run_dir}", *words]).settings()
    assert isinstance(found, SearchRunConfig)
    assert searched(found).tally["problems"] == 2
    with pytest.raises(UsageError, match="asks for no scores"):
        searched(replace(found, calibration="cal.json"))


def test_scores_are_calibrated_and_what_they_were_is_kept(tmp_path: Path, runs: dict[str, Path]) -> None:
    raw = tables(runs["best_of_n"])[STEP_SCORES]
    model = str(tables(runs["best_of_n"])[CANDIDATES]["model"][0])
    calibration = squared(tmp_path / "cal.json", model)
    run_dir = search_in(
        tmp_path / "calibrated", sums(PROBLEMS), "search=best_of_n", *SMALL, f"calibration={calibration}"
    )
    found = tables(run_dir)
    scores = found[STEP_SCORES]
    assert scores["raw_score"].to_list() == raw["score"].to_list()
    assert scores["score"].to_list() == pytest.approx([score**2 for score in raw["score"]], abs=1e-3)
    assert found[CANDIDATES]["raw_step_scores"].null_count() == 0
    assert is_sound(run_dir)
    other = squared(tmp_path / "other.json", "another")
    with pytest.raises(UsageError, match="was made for scores of another, not of oracle:"):
        search_in(tmp_path / "refused", sums(2), "search=best_of_n", *SMALL, f"calibration={other}")


def test_a_search_that_accepts_says_what_it_trusts(tmp_path: Path) -> None:
    many = sums(12)
    words = ("search=best_of_n", "search.n=16", "search.round=2", "run.unit_problems=8", PERFECT)
    run_dir = search_in(tmp_path, many, *words, "search.accept=0.9")
    found = tables(run_dir)[SEARCHES]
    trusted = found.filter("trusted")
    assert 0 < trusted.height <= found.height
    assert (trusted["confidence"] >= 0.9).all()
    assert (trusted["stopped"] == "accepted").all()
    # With perfect scores, what is trusted is right.
    assert (trusted["verdict"] == "correct").all()
    assert min(trusted["candidates"].to_list()) < 16
    assert (found.filter(~pl.col("trusted"))["candidates"] == 16).all()
    assert is_sound(run_dir)


def test_an_estimate_searches_a_sample_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = settings(tmp_path, [*sums(SearchTask.sample + 8), {"answer": "1"}], "search=beam", *SMALL)
    found = estimate(SearchTask(config))
    assert (found.sample.chains, found.sampled, found.sample.left_out.rows) == (
        SearchTask.sample + 8,
        SearchTask.sample,
        1,
    )
    for name in ("policy_tokens", "scorer_computed"):
        assert sum(each or 0 for each in found.tables["searches"][name].to_pylist()) > 0
    assert found.seconds > 0
    words = ["search", f"data.path={tmp_path / 'rows.jsonl'}", f"run_dir={config.run_dir}", "--estimate"]
    oracles = ["policy=oracle", "policy.oracle.world=tree", "scorer=oracle", "scorer.oracle.world=tree"]
    assert main([*words, *oracles, "search=beam", "search.n=4"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{SearchTask.sample + 8} problems to search by beam with n=4\n")
    assert "left out  1 row, the first: " in said
    assert not Path(config.run_dir).exists()


class Faulty(Search):
    """A search that goes wrong after its first answers."""

    fault: str
    newest_only = False

    def search(self, task: Task) -> Steps[Found]:
        ends = yield from together([sample(task.root, draw, WHOLE) for draw in range(2)])
        yield from together([self._wrong(ends[0][-1])])
        return Found(candidates=(ends[0][-1],), chosen=ends[0][-1])

    def _wrong(self, end: Node) -> Any:
        match self.fault:
            case "raises":
                raise ZeroDivisionError("by nothing")
            case "goes on after the end":
                yield Sample(node=end, draw=0)
            case "of another problem":
                yield Score(node=replace(end, node_id="0" * 20))
            case "nonsense":
                yield 5
            case "alone":
                yield Together([5])  # type: ignore[list-item]  # the fault


class NoScores(Faulty):
    scores = False
    fault = "of its own"

    def _wrong(self, end: Node) -> Any:
        yield Score(node=end)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raises", "failed in search: ZeroDivisionError: by nothing"),
        ("goes on after the end", "it asks for a sample after the end of a chain"),
        ("of another problem", "it asks about a node that is not of problem"),
        ("nonsense", "failed in search"),
        ("alone", "failed in search"),
        ("of its own", "it asks for a score, but its `scores` is False"),
    ],
)
def test_a_search_of_ones_own_that_goes_wrong_ends_the_run_in_one_line(fault: str, said: str, tmp_path: Path) -> None:
    config = settings(tmp_path, sums(3), *SMALL)
    kind: type[Faulty] = NoScores if fault == "of its own" else type("Faulty", (Faulty,), {"fault": fault})
    given = GivenObject(made=kind, loaded=kind, make=kind, where="tests:Faulty", code="0")
    with INSTALLED.offer("faulty", given), pytest.raises(PluginError, match=said) as raised:
        searched(replace(config, search=replace(config.search, method="faulty")))
    assert "\n" not in str(raised.value)
    assert "tests:Faulty" in str(raised.value)
    assert json.loads((Path(config.run_dir) / "run.json").read_text())
