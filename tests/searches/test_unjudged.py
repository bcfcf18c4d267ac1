"""What `search` says of problems that it cannot judge or trust: known answers that no grader reads, repeated problems, given
chains, gates that nothing passes."""

import re
from pathlib import Path

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.analysis.searches.equal_tokens import tokens_of_chains
from pipeline.analysis.searches.read import finished_searches, search_run
from pipeline.storage.location import storage_at
from pipeline.storage.stored_search import stored_search
from tests.searches.runs import search_in, sums

pytestmark = pytest.mark.slow
Printed = pytest.CaptureFixture[str]
FEW = ("search=best_of_n", "search.n=2")


def searches(run_dir: Path) -> pl.DataFrame:
    return pl.read_parquet(run_dir / "searches" / "*.parquet").sort("row")


def test_known_answers_that_the_grader_cannot_read_are_named(tmp_path: Path, capsys: Printed) -> None:
    rows = sums(4)
    rows[1]["answer"] = "\\frac{"
    run_dir = search_in(tmp_path / "a", rows, *FEW)
    assert searches(run_dir)["gold_answer"].to_list() == ["2", "\\frac{", "6", "8"]
    assert searches(run_dir)["outcome"].is_null().to_list() == [False, True, False, False]
    assert main(["report", f"run_dir={run_dir}"]) == 0
    said = capsys.readouterr().out
    unreadable = "a known answer that the grader cannot read"
    assert f"accuracy is not claimed for 1 of 4 searches (25 %): 1 with {unreadable}" in said
    assert "known answers that cannot be read: give a number, LaTeX or words" in said
    assert "without a known answer" not in said
    assert re.search(
        rf'dir="auto">{unreadable}</td>\s*<td class="number"[^>]*>1</td>', (run_dir / "report.html").read_text()
    )
    assert main(["select", f"scores={run_dir}"]) == 0
    said = capsys.readouterr().out
    assert "problems  3, with 6 candidates in all (2 each)" in said
    assert "1 more with a known answer that the grader cannot read, left out" in said
    assert "counted as wrong" not in said


def test_a_problem_that_is_there_twice_is_searched_once_and_the_other_row_is_rejected(tmp_path: Path) -> None:
    first, second = sums(2)
    rows = [first, second, {**first, "id": "again"}, {**first, "id": "other", "answer": "77"}]
    run_dir = search_in(tmp_path / "a", rows, *FEW)
    rejects = pl.read_parquet(run_dir / "rejects" / "*.parquet").sort("line")
    place = f"{tmp_path / 'a' / 'rows.jsonl'}:1"
    assert rejects.select("line", "source_id", "reason", "detail").rows() == [
        (3, "again", "duplicate", f"the same problem is at {place}; that row is searched"),
        (4, "other", "duplicate", f"the same problem, with another answer, is at {place}; that row is searched"),
    ]
    assert searches(run_dir).height == 2


def test_a_chain_of_a_problem_with_another_answer_is_rejected(tmp_path: Path) -> None:
    """One of the answers is wrong, and nothing says which: the first one counts."""
    (first,) = sums(1)
    rows = [
        {**first, "id": str(at), "answer": answer, "steps": [f"It is {at}.", "The answer is 2."]}
        for at, answer in enumerate(["2", "2", "77"])
    ]
    del rows[1]["answer"]
    run_dir = search_in(tmp_path / "a", [*rows, first], "search=regenerate", "search.n=2")
    (reject,) = pl.read_parquet(run_dir / "rejects" / "*.parquet").to_dicts()
    assert (reject["line"], reject["source_id"], reject["reason"]) == (3, "2", "duplicate")
    assert reject["detail"].startswith("the same problem, with another answer, is at ")
    assert searches(run_dir).height == 3


def test_what_chains_cost_is_read_from_the_log(tmp_path: Path) -> None:
    """Of 40 chains of a small tree many have equal texts. Each text is scored once."""
    words = ("search=best_of_n", "search.n=40", "policy.lab.depth=2", "scorer.lab.depth=2")
    stored = stored_search(storage_at(str(search_in(tmp_path / "a", sums(3), *words))))
    run = search_run(stored, "a", finished_searches(stored))
    assert run.independent
    for each in run.searches.iter_rows(named=True):
        assert sum(each["texts"]) == 40
        assert len(each["texts"]) < 40
        assert sum(each["computed"]) == each["scorer_computed"]
    first, last = tokens_of_chains(run, [1, 40]).mean(axis=0)
    assert last.tolist() == pytest.approx(
        [run.searches["policy_tokens"].mean(), run.searches["scorer_computed"].mean()]
    )
    assert first[0] == pytest.approx(last[0] / 40)
    assert first[1] > 2 * last[1] / 40


def test_other_chains_of_a_problem_are_not_rejected(tmp_path: Path) -> None:
    (first,) = sums(1)
    rows = [{**first, "id": str(n), "steps": [f"It is {n}.", f"The answer is {n}."]} for n in (1, 2)]
    run_dir = search_in(tmp_path / "a", rows, *FEW)
    assert not (run_dir / "rejects").exists()
    assert searches(run_dir).height == 1


def test_a_given_chain_counts_as_graded_everywhere(tmp_path: Path, capsys: Printed) -> None:
    """Without scores, ids decide which of two chains is chosen."""
    rows = [{**row, "steps": ["It is easy.", f"The answer is {row['answer']}."]} for row in sums(8)]
    run_dir = search_in(
        tmp_path / "a", rows, "search=regenerate", "search.n=1", "search.chains=1", "scorer.lab.unreadable=1.0"
    )
    chosen = pl.read_parquet(run_dir / "candidates" / "*.parquet").filter("chosen").sort("row")
    given = pl.Series([steps == row["steps"] for steps, row in zip(chosen["steps"].to_list(), rows, strict=True)])
    assert 0 < given.sum() < len(rows)
    stored = searches(run_dir)
    assert stored["outcome"].to_list() == chosen["outcome"].to_list()
    assert set(stored.filter(given)["verdict"]) == {"correct"}
    right = int(stored["outcome"].sum())
    wrong = len(rows) - right
    assert main(["status", f"run_dir={run_dir}"]) == 0
    assert f"{right} right, {wrong} wrong, 0 without an answer, 0 ungraded\n" in capsys.readouterr().out
    assert main(["report", f"run_dir={run_dir}"]) == 0
    assert f"of {len(rows)} choices that can be graded" in capsys.readouterr().out
    assert main(["audit", f"run_dir={run_dir}"]) == 0


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (["search.accept=0.999"], "the highest confidence is 0."),
        (["search.accept=0.2", "search.reliability=0.5"], "leave that setting out where the scorer states none"),
        (["search.accept=0.2", "search.max_steps=1"], "were cut, state no answer"),
        (["search.accept=0.2", "scorer.lab.unreadable=1.0"], "because the scorer gave no score"),
    ],
)
def test_a_gate_that_nothing_passes_says_why(settings: list[str], why: str, tmp_path: Path, capsys: Printed) -> None:
    run_dir = search_in(tmp_path / "a", sums(4), *FEW, "scorer.lab.slope=0.2", *settings)
    assert main(["report", f"run_dir={run_dir}"]) == 0
    said = capsys.readouterr().out
    (line,) = [line for line in said.splitlines() if "nothing is trusted" in line]
    assert why in line
    assert ("nothing steered the search" in said) == ("unreadable" in settings[-1])
