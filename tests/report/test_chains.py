"""Which chains are shown, and how: by the command `chains`, as text in a terminal, as HTML in a notebook."""

import html
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.__main__ import main
from pipeline.analysis.chains import COLUMNS, Chains, chosen, measured
from pipeline.core import tables
from pipeline.core.errors import UsageError
from pipeline.storage.local import LocalStorage
from pipeline.storage.stored_run import stored_run
from tests.library import Library

HOSTILE = ["<script>alert(1)</script>", "' onmouseover='x", "&amp;", '"><img src=x onerror=y>']


def chain(values: list[float | None], **more: Any) -> dict[str, Any]:
    return {
        "chain_id": "c",
        "source_id": "s",
        "problem": "2 + 3?",
        "gold_answer": "5",
        "outcome": True,
        "final_answer": "5",
        "root_value": 0.5,
        "steps": [f"step {number}" for number in range(len(values))],
        "value": values,
        "n_correct": [1] * len(values),
        "n_rollouts": [2] * len(values),
        **more,
    }


def frame(*chains: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(chains), schema_overrides={"value": pl.List(pl.Float64)})


def sources(chains: Chains) -> list[str]:
    return [row["source_id"] for row in chains.rows]


@given(root=st.floats(0, 1), values=st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_a_drop_is_the_largest_fall_from_one_step_to_the_next(root: float, values: list[float]) -> None:
    path = [root, *values]
    falls = [before - after for before, after in pairwise(path)]
    row = measured(frame(chain([*values], root_value=root))).to_dicts()[0]
    assert row["drop"] == pytest.approx(max(0.0, *falls))
    assert row["rise"] == pytest.approx(max(0.0, *(-fall for fall in falls)))
    assert (row["lowest"], row["n_steps"]) == (min(values), len(values))


def test_steps_without_a_value_are_passed_over() -> None:
    row = measured(frame(chain([None, 0.2, None]), chain([None]))).to_dicts()
    assert [each["drop"] for each in row] == [0.0, 0.0]


LABELS = frame(
    chain([0.5, 0.0], source_id="falls", outcome=False),
    chain([0.6, 1.0], source_id="rises"),
    chain([0.5], source_id="unknown", outcome=None),
)


@pytest.mark.parametrize(("where", "expected"), [
    (None, ["falls", "rises", "unknown"]),
    ("drop >= 0.5", ["falls"]),
    ("rise > 0.3 AND outcome", ["rises"]),
    ("outcome IS NULL", ["unknown"]),
    ("n_steps = 2 AND root_value < 0.9", ["falls", "rises"]),
    ("source_id LIKE 'r%'", ["rises"]),
    (pl.col("lowest") > 0.55, ["rises"]),
])  # fmt: skip
def test_a_condition_chooses_chains(where: str | pl.Expr | None, expected: list[str]) -> None:
    assert sources(chosen(LABELS, 10, where)) == expected
    assert sources(chosen(LABELS, 1, where)) == expected[:1]


def test_a_column_that_is_not_there_is_answered_with_all_that_are() -> None:
    with pytest.raises(UsageError) as raised:
        chosen(LABELS, 1, "vlue > 0.5")
    said, _, columns = str(raised.value).partition("It may name ")
    assert said == "where=vlue > 0.5: there is no column vlue: did you mean value? "
    assert set(columns.split(", ")) == {*COLUMNS, *LABELS.columns}


@pytest.mark.parametrize("where", ["value > 0.5", "n_correct = 1", pl.col("value") > 0.5])
def test_a_column_of_steps_comes_with_examples_that_work(where: str | pl.Expr) -> None:
    with pytest.raises(UsageError, match="write for example") as raised:
        chosen(LABELS, 1, where)
    said = str(raised.value)
    assert "List" not in said
    assert "dtype" not in said
    labelled = LABELS.with_columns(label=pl.lit([1, 0], pl.List(pl.Int8)))
    examples = re.findall(r"(\w+ < [\d.]+|\w+\[1\] > [\d.]+|ARRAY_CONTAINS\(label, 0\))", said.partition("example ")[2])
    assert len(examples) == 3
    for example in examples:
        assert 0 < chosen(labelled, 10, example).total <= len(labelled)
    assert {row["value"][0] > 0.5 for row in chosen(labelled, 10, examples[1]).rows} == {True}


@pytest.mark.parametrize(("where", "words"), [
    ("drop >", "cannot be evaluated"),
    ("drop", "cannot be evaluated"),
    ("problem > 5", "cannot be evaluated"),
])  # fmt: skip
def test_a_condition_that_is_none_is_refused(where: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        chosen(LABELS, 1, where)


def test_a_notebook_shows_each_step_in_the_colour_of_its_value_and_no_tag_of_a_text() -> None:
    texts = dict(zip(("problem", "gold_answer", "source_id"), HOSTILE, strict=False))
    page = Chains([chain([0.0, 1.0, None, 0.5], steps=HOSTILE, **texts)])._repr_html_()
    assert set(re.findall(r"<(\w+)", page)) <= {"div", "b", "code", "span"}
    shown = html.unescape(re.sub("<[^>]*>", "", page))
    assert all(text in shown for text in HOSTILE)
    assert [page.count(colour) for colour in ("hsl(0 ", "hsl(120 ", "hsl(60 ", "#eee")] == [1, 1, 1, 1]


def test_no_chain_is_said() -> None:
    assert str(Chains([])) == Chains([])._repr_html_() == "no chain"


@pytest.fixture(scope="module")
def run_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("mixed", tmp_path_factory.mktemp("chains"))


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["chains", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_prints_the_chains_that_it_is_asked_for(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = stored_run(LocalStorage(run_dir)).frame(tables.LABELS)
    wrong = [row["source_id"] for row in labels.to_dicts() if row["outcome"] is False]
    code, out, err = printed(capsys, f"run_dir={run_dir}", "where=NOT outcome", "limit=100")
    assert (code, err) == (0, "")
    assert all(f"{name} (wrong)" in out for name in wrong)
    assert (out.count(" (wrong)"), out.count(" (right)")) == (len(wrong), 0)
    code, out, err = printed(capsys, f"run_dir={run_dir}", "limit=1")
    assert (code, err) == (0, f"stepvalue: 1 of {len(labels)} chains; limit={len(labels)} shows all\n")
    assert out.count("step  text") == 1
    assert printed(capsys, f"run_dir={run_dir}", "where=drop > 2") == (0, "", "stepvalue: no chain has drop > 2\n")
    code, out, err = printed(capsys, f"run_dir={run_dir}", "where=dorp > 0.5")
    assert (code, out) == (2, "")
    assert "did you mean drop" in err
