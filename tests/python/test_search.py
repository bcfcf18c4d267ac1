"""`search`, `solve` and `open_search` from Python, with the oracle's tree world."""

import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pipeline
from pipeline import SearchRun, open_search, search, solve
from pipeline.core.errors import InputError, UsageError
from pipeline.core.table import TABLES
from pipeline.examples.search import Greedy, GreedyConfig
from tests.runtime.without_ray import python_without_ray

pytestmark = pytest.mark.slow

ROWS: list[dict[str, Any]] = [
    {"id": f"r{number}", "problem": f"What is {number} + 1?", "answer": str(number + 1)} for number in range(5)
]
TREE: dict[str, Any] = {
    "policy": {"kind": "oracle", "oracle": {"world": "tree"}},
    "scorer": {"kind": "oracle", "oracle": {"world": "tree", "auc": 0.9}},
    "progress": False,
}
BEAM: dict[str, Any] = {"method": "beam", "n": 4, "width": 2}
TIMES = ("seconds", "took")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SearchRun:
    run_dir = tmp_path_factory.mktemp("python") / "run"
    with python_without_ray():
        return search([*ROWS, {"id": "bad", "problem": " "}], search=BEAM, run_dir=run_dir, **TREE)


def test_the_tables_are_frames(run: SearchRun) -> None:
    frames = {
        "searches": run.searches(), "candidates": run.candidates(), "samples": run.samples(), "stepscores": run.step_scores(),
    }  # fmt: skip
    for name, frame in frames.items():
        assert frame.columns == TABLES[name].schema.names
        assert not frame.is_empty()
    assert run.searches()["source_id"].to_list() == [row["id"] for row in ROWS]
    assert run.rejects()["line"].to_list() == [6]
    assert run.finished
    assert run.settings["search.method"] == "beam"
    assert run.settings["search.width"] == 2


def test_what_was_found_is_what_the_tables_say(run: SearchRun) -> None:
    solved = run.solved()
    searches, candidates = run.searches(), run.candidates()
    assert [each.answer for each in solved] == searches["final_answer"].to_list()
    for each, row in zip(solved, searches.iter_rows(named=True), strict=True):
        chosen = candidates.filter((pl.col("row") == row["row"]) & pl.col("chosen")).to_dicts()
        assert [step.text for step in each.steps] == chosen[0]["steps"]
        assert [step.score for step in each.steps] == chosen[0]["step_scores"]
        assert len(each.alternatives) == row["candidates"] - 1
        assert each.score == row["score"] == chosen[0]["score"]
        assert (each.policy_tokens, each.scorer_tokens) == (row["policy_tokens"], row["scorer_computed"])
    assert [each.source_id for each in run.solved("r3")] == ["r3"]
    assert run.solved(solved[2].problem_id) == [solved[2]]
    with pytest.raises(UsageError, match=r"no finished search is of the problem 'r33', did you mean r3\?"):
        run.solved("r33")


def test_the_tree_of_a_problem_has_the_chosen_path(run: SearchRun) -> None:
    solved = run.solved("r1")[0]
    tree = run.tree("r1")
    assert [tree.nodes[at].text for at in tree.path] == [step.text for step in solved.steps]
    assert tree.weakest == tree.path[(solved.weakest or 0) - 1]
    frame = tree.frame()
    assert frame.height == len(tree.nodes)
    assert frame.filter("on_path").height == len(solved.steps)
    assert repr(tree).splitlines()[0] == "What is 1 + 1?"
    assert sum(line.startswith("*") for line in repr(tree).splitlines()) == len(solved.steps)


def test_the_page_and_the_audit(run: SearchRun) -> None:
    assert Path(run.report()).is_file()
    assert run.audit().sound


def test_a_run_is_shown_by_its_important_lines(run: SearchRun) -> None:
    lines = repr(run).splitlines()
    assert lines[0] == f"SearchRun({run.run_dir!r}, finished)"
    assert any(line.startswith("problems  5, by beam with n=4") for line in lines)
    assert any("made up" in line for line in lines)
    with pytest.raises(UsageError, match="is a run of `search`"):
        pipeline.open_run(run.run_dir)


def test_one_problem_gives_one_result_and_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = solve("What is 3 * 4?", search=BEAM, accept=0.9, **TREE)
    assert found.problem == "What is 3 * 4?"
    assert found.answer is not None
    assert found.steps
    assert found.outcome is None, "no answer is known"
    assert found.trusted is (found.confidence is not None and found.confidence >= 0.9)
    assert [step.sure for step in found.steps] == [step.score is not None and step.score >= 0.9 for step in found.steps]
    assert list(tmp_path.iterdir()) == []


def test_several_problems_come_back_in_their_order(tmp_path: Path) -> None:
    problems: list[Any] = ["one", {"problem": "two", "answer": "2", "id": "mine"}, "one", {"problem": "three"}]
    found = solve(problems, search="best_of_n", run_dir=tmp_path / "kept", **{**TREE, "search.n": 3})
    assert [each.problem for each in found] == ["one", "two", "one", "three"]
    assert [each.source_id for each in found] == [None, "mine", None, None]
    assert found[0] == found[2]
    assert [each.outcome is None for each in found] == [True, False, True, True]
    assert all(each.trusted is None for each in found)
    assert open_search(tmp_path / "kept").searches().height == 3


def test_an_object_is_a_search_and_audit_needs_it(tmp_path: Path) -> None:
    run = search(ROWS, search=Greedy(GreedyConfig(n=3)), run_dir=tmp_path / "run", **TREE)
    assert str(run.settings["search.plugin"]).startswith("object ")
    assert run.settings["search.n"] == 3
    assert all(each.alternatives == () for each in run.solved())
    assert run.audit().sound
    assert open_search(run.run_dir, search=Greedy(GreedyConfig(n=3))).audit().sound
    without = open_search(run.run_dir).audit()
    assert not without.sound
    assert "give the same object in Python, open_search(RUN_DIR, search=...)" in repr(without)


@pytest.mark.parametrize(("problem", "settings", "error", "words"), [
    ("one", {"search": {"method": "beam", "n": 4, "width": 8}}, UsageError, "search.width"),
    ("one", {"search": "baem"}, UsageError, "did you mean beam"),
    ("one", {"accept": 2}, UsageError, "search.accept=2"),
    ("one", {"accept": 0.5, "search.accept": 0.6}, UsageError, "search.accept is given twice"),
    ("one", {"cluster": {"address": "auto"}}, UsageError, "run_dir is missing: the nodes of a cluster"),
    ("one", {"search": 3}, UsageError, "the methods of a search, not int"),
    (["one", 3], {}, InputError, "problem 2 is of type int: give its text"),
    (["one", " "], {}, InputError, "problem 2 cannot be used: "),
    ([{"question": "one"}], {}, InputError, "^the given data holds no problem to search; the first of 1 rows: row 1: "),
    ([], {}, InputError, "there are no rows"),
])  # fmt: skip
def test_what_is_asked_wrongly_is_an_exception_with_the_sentence(
    problem: Any, settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        solve(problem, **{**TREE, **settings})


def test_a_search_needs_rows_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run_dir is missing: give run_dir=FOLDER"):
        search(ROWS, **TREE)
    with pytest.raises(UsageError, match="there are no rows"):
        search(run_dir=tmp_path, **TREE)
    with pytest.raises(UsageError, match="does not contain a run"):
        open_search(tmp_path)
