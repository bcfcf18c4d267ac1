"""For any rows, split anywhere and put in any order: what a growth stages, and what it refuses."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.label import DataConfig, RunConfig
from pipeline.core.errors import InputError
from pipeline.core.records import InputRow, Totals
from pipeline.data.problems import read_row
from pipeline.graders.registry import checker_for
from pipeline.runtime import intake
from pipeline.runtime.intake import read_input, stage
from pipeline.runtime.staged_input import grow
from pipeline.storage.commits import Commit
from pipeline.storage.local import LocalStorage
from pipeline.storage.units import content_of, staged_rows, unit_id_of
from tests.settings import grader_settings

pytestmark = pytest.mark.slow

Row = dict[str, Any]
PLENTY = {"problem": "A first problem?", "answer": "1", "steps": ["The answer is 1."], "id": "first"}
"""A row that can be used, so that no input is refused."""


@st.composite
def rows(draw: st.DrawFn) -> Row:
    number, last = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    row: Row = {"problem": f"{number}?", "answer": str(number), "steps": ["Well.", f"The answer is {last}."]}
    fault = draw(st.sampled_from([None] * 6 + ["answer", "problem", "steps"]))
    if fault:
        row[fault] = {"answer": None, "problem": " ", "steps": None}[fault]
    name = draw(st.one_of(st.none(), st.integers(0, 6)))
    return row if name is None else {**row, "id": name}


class Input:
    """A file of rows, staged and grown in a folder."""

    def __init__(self, folder: Path) -> None:
        self.storage = LocalStorage(folder / "run")
        self._path = folder / "rows.jsonl"
        self._run = RunConfig(unit_problems=2)
        self._checker = checker_for(grader_settings("math"))

    def data(self, content: Sequence[Row]) -> DataConfig:
        self._path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
        return DataConfig(path=str(self._path))

    def first(self, content: Sequence[Row], name: str = "1") -> Commit:
        with self._checker as checker:
            return stage(self.storage, name * 20, self.data(content), self._run, checker)

    def grown(self, staged: Commit, content: Sequence[Row]) -> tuple[Totals, Commit]:
        """The totals of what is new, and the record of the grown input."""
        with self._checker as checker:
            found = grow(self.storage, staged, self.data(content), self._run, checker)
        return found.totals - staged.totals, replace(found, number=staged.number + 1)

    def units(self, staged: Commit) -> list[str]:
        return [unit_id_of(unit) for unit in staged_rows(self.storage, staged)]

    def used(self, staged: Commit) -> Counter[str]:
        return Counter(content_of(row) for unit in staged_rows(self.storage, staged) for row in unit)

    def readable(self, content: Sequence[Row]) -> set[tuple[str, str | None]]:
        """Content and id of the rows that can be read."""
        with self._checker as checker:
            read = list(read_input(self.data(content), checker))
        return {(content_of(row), row.source_id) for row in read if isinstance(row, InputRow)}


@contextmanager
def an_input() -> Iterator[Input]:
    with TemporaryDirectory() as folder:
        yield Input(Path(folder))


def mixed(draw: st.DataObject, old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """The old rows in any order, with the new ones in theirs anywhere between them."""
    left, right = list(draw.draw(st.permutations(old))), list(new)
    both: list[Row] = []
    while left or right:
        take_left = bool(left) and (not right or draw.draw(st.booleans()))
        both.append((left if take_left else right).pop(0))
    return both


def test_a_run_from_before_texts_were_mended_keeps_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["What is \theta?", "What is \fooo?", "What is $\nu$?"]
    *old, new = [{**PLENTY, "problem": text, "id": text} for text in texts]
    with an_input() as given_input:
        with monkeypatch.context() as before:
            before.setattr(intake, "read_input", partial(read_input, read=partial(read_row, mends=False)))
            first = given_input.first(old)
        grown, commit = given_input.grown(first, [new, *old])
        assert (grown.used, grown.rejected, commit.totals.mended) == (1, 0, 1)
        assert set(given_input.units(first)) < set(given_input.units(commit))


def test_a_row_that_repeats_one_and_has_the_id_of_another_is_rejected_once() -> None:
    chain: Row = {"problem": "0?", "answer": "0", "steps": ["Well.", "The answer is 0."]}
    content: list[Row] = [PLENTY, chain, {**chain, "id": 0}, {"problem": "0?", "answer": "0", "steps": None, "id": 0}]
    with an_input() as given_input:
        grown, commit = given_input.grown(given_input.first([PLENTY]), content)
        assert (grown.used, grown.rejected) == (2, 1)
        again, _ = given_input.grown(commit, content)
        assert (again.used, again.rejected) == (0, 0)


@given(st.data(), st.lists(rows(), max_size=7), st.lists(rows(), max_size=5))
def test_old_units_stay_and_every_row_is_staged_once(draw: st.DataObject, old: list[Row], new: list[Row]) -> None:
    old = [PLENTY, *old]
    with an_input() as given_input:
        first = given_input.first(old)
        grown, commit = given_input.grown(first, mixed(draw, old, new))
        fresh = given_input.first([*old, *new], name="2")
        units = given_input.units(commit)
        assert units[: len(given_input.units(first))] == given_input.units(first)
        assert len(set(units)) == len(units)
        assert given_input.used(commit) == given_input.used(fresh)
        assert commit.totals == fresh.totals
        assert grown.used == commit.totals.used - first.totals.used
        held: Counter[str] = Counter()
        for unit in staged_rows(given_input.storage, commit):
            assert {row.problem.problem_id: row.again for row in unit} == {
                row.problem.problem_id: held[row.problem.problem_id] for row in unit
            }
            held.update({row.problem.problem_id for row in unit})
        again, same = given_input.grown(commit, mixed(draw, old, new))
        assert (again.used, again.rejected, same.shards) == (0, 0, commit.shards)


@given(st.data(), st.lists(rows(), max_size=6), st.lists(rows(), max_size=4))
def test_exactly_the_used_rows_that_are_gone_have_changed(draw: st.DataObject, old: list[Row], new: list[Row]) -> None:
    old = [PLENTY, *old]
    with an_input() as given_input:
        first = given_input.first(old)
        left = [row for row in old if draw.draw(st.integers(0, 3))]
        present = given_input.readable([*left, *new])
        gone = {
            content_of(row)
            for unit in staged_rows(given_input.storage, first)
            for row in unit
            if (content_of(row), row.source_id) not in present
        }
        with pytest.raises(InputError, match=f"{len(gone)} of {first.totals.used}") if gone else nullcontext():
            given_input.grown(first, [*left, *new])
        # With the lost rows back, nothing has changed.
        _, back = given_input.grown(first, [*left, *new, *old])
        assert back.totals.rows == back.totals.used + back.totals.rejected
