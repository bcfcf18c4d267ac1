"""The interface of a layout: the row that a trainer reads, and the checks for what that trainer would misread. Also has the
checks that several layouts share.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from pipeline.export.example import TrainingExample
from pipeline.export.settings import FileType, TargetKind

Row = dict[str, object]


class JsonText(str):
    """A value that is JSON already and is written as it is, for values nested deeper than Python's `json` can write. Parquet
    holds it as a text."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The text between steps, and the token for their rewards; empty if a format has none."""

    separator: str = ""
    placeholder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatError:
    """Why a trainer would misread a row. `kind` is a word for counting, `detail` a sentence.

    `fatal`: labels would be misplaced, or the row cannot be written. If it is not fatal, the trainer cuts the row, leaves it
    out, or its model sees other step ends in use than in training.
    """

    kind: str
    detail: str
    fatal: bool


class Encoder(Protocol):
    """The functions of a tokenizer that the checks need."""

    @property
    def bos(self) -> int | None:
        """The id of the token that trainers put in front, if the tokenizer has one."""
        ...

    def ids(self, text: str) -> list[int]:
        """The token ids of a text, without special tokens around it."""
        ...

    def special_in(self, text: str) -> str | None:
        """The first special token, such as an end of turn, that occurs in a text as characters. The tokenizer would treat it as
        the special token."""
        ...

    def chat(self, messages: list[dict[str, str]]) -> list[int]:
        """The token ids of a conversation in the tokenizer's chat template. Raises UsageError if it has none."""
        ...


def columns(*named: tuple[str, pa.DataType]) -> Callable[[TargetKind], pa.Schema]:
    """The schema of rows that have the same columns for every target."""
    schema = pa.schema(named)
    return lambda _target: schema


def not_of_tokens(_row: Row, _marks: Marks, _encoder: Encoder, _max_length: int | None) -> Iterator[FormatError]:
    """No check, for formats whose rows are not tokenized directly."""
    return iter(())


def no_steps(example: TrainingExample, _marks: Marks | None = None) -> Iterator[FormatError]:
    if not example.steps:
        yield FormatError(kind="no_steps", detail="it has no steps", fatal=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A trainer's layout.

    `targets`: supported targets, the default first. `ignores`: a step may have no label. `neutral`: it has a class for neutral
    steps. `whole`: a row needs the whole chain, so no step may be removed. `outcome`: its only label is the chain's outcome.
    `marks`: the defaults. `max_length`: tokens of a row that its trainer uses by default, None without a limit. `schema`: of
    its rows as Parquet.
    """

    targets: tuple[TargetKind, ...]
    row: Callable[[TrainingExample, Marks], Row]
    schema: Callable[[TargetKind], pa.Schema]
    offences: Callable[[TrainingExample, Marks], Iterator[FormatError]] = no_steps
    """Finds errors in the texts."""
    token_offences: Callable[[Row, Marks, Encoder, int | None], Iterator[FormatError]] = not_of_tokens
    """Finds errors in the tokens of a row. The last argument is the largest number of tokens that the trainer uses."""
    ignores: bool = False
    neutral: bool = False
    whole: bool = False
    outcome: bool = False
    marks: Marks = Marks()
    file: FileType = FileType.jsonl
    max_length: int | None = None


def separator_in_step(example: TrainingExample, marks: Marks) -> Iterator[FormatError]:
    """A separator within a step. Training sees no step end there, but a user who splits a text at the separator does."""
    for number, step in enumerate(example.steps, start=1):
        if marks.separator in step:
            detail = f"step {number} contains the separator {marks.separator!r}"
            yield FormatError(kind="separator_in_step", detail=detail, fatal=False)
            return


def mark_in_text(
    example: TrainingExample, mark: str, remedy: str = "choose another placeholder"
) -> Iterator[FormatError]:
    """A mark in the problem or in a step. The trainer takes every mark for the end of a step, also without blanks around it."""
    bare = mark.strip() or mark
    if bare in example.problem:
        yield FormatError(kind="mark_in_text", detail=f"the problem contains the mark {bare!r}: {remedy}", fatal=True)
        return
    for number, step in enumerate(example.steps, start=1):
        if bare in step:
            yield FormatError(
                kind="mark_in_text", detail=f"step {number} contains the mark {bare!r}: {remedy}", fatal=True
            )
            return


def placeholder_in_text(example: TrainingExample, marks: Marks) -> Iterator[FormatError]:
    """No steps, or the placeholder in a text."""
    yield from no_steps(example)
    yield from mark_in_text(example, marks.placeholder)


def special_tokens(example: TrainingExample, encoder: Encoder) -> Iterator[FormatError]:
    """Text that the tokenizer reads as a control token, which may end a turn or the text."""
    for where, text in (("the problem", example.problem), *((f"step {n}", s) for n, s in enumerate(example.steps, 1))):
        if token := encoder.special_in(text):
            detail = f"{where} contains {token!r}, which the tokenizer reads as a control token"
            yield FormatError(kind="special_token", detail=detail, fatal=False)
            return


def marks_among(ids: Sequence[int], mark: int, labels: int, max_length: int | None) -> Iterator[FormatError]:
    """Errors if the token `mark` does not occur once per label in a row, or if the trainer cuts some of them off."""
    found = ids.count(mark)
    if found != labels:
        detail = (
            f"it has {labels} labels but {found} placeholder tokens, because the placeholder merges with the text around it: "
            "choose one that is always a token of its own, such as an added token"
        )
        yield FormatError(kind="placeholder_count", detail=detail, fatal=True)
    elif max_length is not None and len(ids) > max_length:
        yield from labels_lost(labels, ids[:max_length].count(mark), max_length)


def one_token(text: str, encoder: Encoder) -> Iterator[FormatError]:
    """An error unless `text` is exactly one token, because the trainer looks for that token."""
    count = len(encoder.ids(text))
    if count != 1:
        detail = f"{text!r} is {count} tokens: choose a text that is one token, or add it to the tokenizer"
        yield FormatError(kind="not_one_token", detail=detail, fatal=True)


def labels_lost(labels: int, kept: int, max_length: int) -> Iterator[FormatError]:
    """The trainer cuts the row, and the labels after the cut are lost."""
    if kept < labels:
        lost = f"{labels - kept} of {labels} labels" if kept else "all labels"
        kind = "labels_lost" if kept else "all_labels_lost"
        detail = f"{lost} are lost, because the row is cut at {max_length:,} tokens: raise max_length"
        yield FormatError(kind=kind, detail=detail, fatal=False)


def too_long(tokens: int, max_length: int | None) -> Iterator[FormatError]:
    """The trainer leaves the row out because it is too long."""
    if max_length is not None and tokens > max_length:
        detail = f"it has {tokens:,} tokens, but the trainer leaves out rows with over {max_length:,}: raise max_length"
        yield FormatError(kind="too_long", detail=detail, fatal=False)
