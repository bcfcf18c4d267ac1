"""Rows of a Python call reach the file that `label` reads, whatever holds them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import InputError
from pipeline.python.rows import write_input

ROWS = [
    {"id": "a", "problem": "2 + 3?", "answer": "5", "steps": ["2 + 3 = 5.", "The answer is 5."]},
    {"id": "b", "problem": "é \U0001f600 \\ \" \n?", "answer": "7", "steps": []},
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@given(rows=st.lists(st.dictionaries(st.text(), JSON, max_size=4), min_size=1, max_size=5))
def test_every_row_comes_back(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]) -> None:
    assert read(write_input(rows, tmp_path_factory.mktemp("rows"))) == rows


@pytest.mark.parametrize("made", [
    list, tuple, iter, lambda rows: (row for row in rows), pl.DataFrame, pl.LazyFrame, pa.Table.from_pylist, pd.DataFrame,
])  # fmt: skip
def test_any_holder_of_the_same_rows_gives_the_same_bytes(tmp_path: Path, made: Any) -> None:
    (tmp_path / "other").mkdir()
    held = made(ROWS)
    if isinstance(held, pl.LazyFrame):
        with pytest.raises(InputError, match="LazyFrame"):
            write_input(held, tmp_path)
        return
    assert write_input(held, tmp_path).read_bytes() == write_input(ROWS, tmp_path / "other").read_bytes()


def test_a_data_set_of_the_package_datasets(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    assert read(write_input(datasets.Dataset.from_list(ROWS), tmp_path)) == ROWS


def test_arrays_become_lists_and_what_is_no_number_becomes_null(tmp_path: Path) -> None:
    row = {"steps": np.array(["a", "b"]), "n": np.int64(3), "x": float("nan"), "y": np.float32("inf")}
    assert read(write_input([row], tmp_path)) == [{"steps": ["a", "b"], "n": 3, "x": None, "y": None}]


@pytest.mark.parametrize(("rows", "words"), [
    ([], "there are no rows"),
    ({"problem": "x"}, "the rows are one mapping"),
    (5, "of type int"),
    ([{"problem": "x"}, ["problem"]], "row 2 is of type list"),
    ([{"problem": "x"}, {"problem": {1, 2}}], "row 2, column 'problem': a value of type set"),
    ([{"problem": "x", "steps": ["a", b"b"]}], "row 1, column 'steps': a value of type bytes"),
    ([{5: "x"}], "row 1: the column name 5 is not text"),
])  # fmt: skip
def test_what_is_no_row_is_refused_by_row_and_column(tmp_path: Path, rows: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        write_input(rows, tmp_path)
