"""Splitting loses nothing, never makes a blank step and never cuts through a formula."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.config.choices import Splitter
from pipeline.data.formulas import formulas, open_formula
from pipeline.data.steps import join, prefix_text, split, step_texts
from tests import strategies as our
from tests.deadlines import bounded

SPLITS = [json.loads(line) for line in Path(__file__).with_name("splits.jsonl").open(encoding="utf-8")]
# fmt: off
HOSTILE = (
    ".", " ", "\n", "$x ", "$5 aa", "\\(", "\\begin{a}", "Step 1 ", "*", "\n ", "a. ", ".)", "$$", "\n\na", "ки ", "{",
    "a! ", "```\n", "~~~x\n```\n", "[asy]", "[asy][/asy]", "| a |\n|-|\n", "|-", "|\n"
)
# fmt: on
PATTERN = r"[;.]|\n"


def slices(text: str, ends: tuple[int, ...]) -> list[str]:
    return [text[start:end] for start, end in zip((0, *ends), ends, strict=False)]


def cut(text: str, splitter: Splitter, pattern: str | None = None) -> list[str]:
    return slices(text, split(text, splitter, pattern))


@given(our.texts, st.sampled_from(Splitter))
def test_split_is_lossless_and_has_no_blank_step(text: str, splitter: Splitter) -> None:
    ends = split(text, splitter, PATTERN)
    assert list(ends) == sorted(set(ends))
    if not text.strip():
        assert ends == ()
        return
    assert "".join(slices(text, ends)) == text
    assert ends[-1] == len(text)
    assert all(step_texts(text, ends))


@given(our.texts, st.sampled_from(Splitter))
def test_no_cut_falls_inside_a_formula_that_was_found(text: str, splitter: Splitter) -> None:
    ends = split(text, splitter, PATTERN)
    assert not [(start, end) for start, end in formulas(text) for at in ends if start < at < end]


@given(our.pieces, st.sampled_from(Splitter))
def test_every_whole_formula_in_prose_is_kept_whole(pieces: list[tuple[bool, str]], splitter: Splitter) -> None:
    text = ""
    inside: set[int] = set()
    for is_formula, piece in pieces:
        text += " "
        if is_formula:
            inside.update(range(len(text) + 1, len(text) + len(piece)))
        text += piece
    assert not inside & set(split(text, splitter, PATTERN))


@given(our.texts, st.sampled_from(Splitter))
def test_slices_joined_are_split_the_same(text: str, splitter: Splitter) -> None:
    ends = split(text, splitter, PATTERN)
    assert join(slices(text, ends), "") == (text if ends else "", ends)


@given(our.step_lists, st.sampled_from(["\n", "\n\n", " ", " ки\n", ""]))
def test_join_gives_every_step_its_separator_but_the_last(steps: list[str], separator: str) -> None:
    text, ends = join(steps, separator)
    assert text == separator.join(steps)
    assert slices(text, ends) == [step + separator for step in steps[:-1]] + steps[-1:]
    if not separator.strip():
        assert step_texts(text, ends) == [step.strip() for step in steps]


def test_join_of_nothing_is_nothing() -> None:
    assert join([], "\n") == ("", ())


@given(our.texts)
def test_prefixes_grow_from_nothing_to_the_text(text: str) -> None:
    ends = split(text, Splitter.newline)
    prefixes = [prefix_text(text, ends, k) for k in range(len(ends) + 1)]
    assert prefixes[0] == ""
    assert prefixes[-1] == (text if ends else "")
    assert all(longer.startswith(shorter) for shorter, longer in pairwise(prefixes))


@pytest.mark.parametrize("k", [-1, 3])
def test_prefix_out_of_range_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match="no prefix of"):
        prefix_text("a\nb", (2, 3), k)


@pytest.mark.parametrize("case", SPLITS, ids=lambda case: ascii(case["text"]))
def test_splitters_cut_where_a_reader_would(case: dict[str, Any]) -> None:
    assert cut(case["text"], Splitter(case["splitter"])) == case["steps"]


def test_regex_ends_a_step_behind_each_match() -> None:
    assert cut("a;b;; c", Splitter.regex, ";+") == ["a;", "b;;", " c"]
    with pytest.raises(ValueError, match="needs a pattern"):
        split("a", Splitter.regex)
    with pytest.raises(re.error):
        split("a", Splitter.regex, "(")


def test_formulas_are_outermost_and_apart() -> None:
    text = r"a $x$ \[ \text{\(y\)} \] \) \end{b} $5 for 2 days ($z$)"
    assert [text[start:end] for start, end in formulas(text)] == ["$x$", r"\[ \text{\(y\)} \]", "$z$"]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_repetition_takes_linear_time(unit: str) -> None:
    text = "$1" + unit * (100_000 // len(unit)) + "\\end{b}x"
    with bounded():
        for splitter in Splitter:
            split(text, splitter, r"\n")


@given(our.texts, our.texts)
@example("It costs $5\n", "$")
@example("It costs $5 {\nper day", "}$")
@example("$$a\n$", "$")
@example("\\begin{a}\n\\[", "\\end{a}")
def test_only_a_formula_that_is_open_goes_on(before: str, after: str) -> None:
    opened = open_formula(before)
    for start, end in formulas(before + after):
        if "\n" in before[start:] and end > len(before):
            assert opened is not None
            assert opened <= start


@given(our.pieces)
def test_between_prose_and_whole_formulas_none_is_open(pieces: list[tuple[bool, str]]) -> None:
    # A blank before each, because a `$` does not close before a digit.
    assert open_formula("".join(f" {text}" for _, text in pieces)) is None
