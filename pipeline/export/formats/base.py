"""What a format is: the row that a trainer reads, and what that trainer would misread; with what several would misread in the
same way. Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from pipeline.export.example import TrainingExample
from pipeline.export.settings import FileType, TargetKind

Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What stands between steps, and for their rewards; empty where a format has no such thing."""

    separator: str = ""
    placeholder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatError:
    """Why a trainer would misread a row, in a word by which offences are counted and a sentence about this one.

    `fatal`: labels would be misplaced, or the row cannot be written. Else the trainer cuts it, leaves it out, or sees other
    step ends when it is used than when it is trained.
    """

    kind: str
    detail: str
    fatal: bool


class Encoder(Protocol):
    """A tokenizer, as far as the checks need one. Token ids are ints."""

    @property
    def bos(self) -> int | None:
        """The id that trainers put in front, if the tokenizer has one."""
        ...

    def ids(self, text: str) -> list[int]:
        """The tokens of a text, without special ones around it."""
        ...

    def special_in(self, text: str) -> str | None:
        """The first special token that a text spells out, such as an end of turn, if it does: it would be taken for one."""
        ...

    def chat(self, messages: list[dict[str, str]]) -> list[int]:
        """The tokens of a conversation in the tokenizer's chat template. Raises UsageError where it has none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A trainer's layout.

    `targets`: what it can be given, its usual one first. `ignores`: a step can stay without a label. `neutral`: it has a class
    for neutral steps. `whole`: a row is about a whole chain, of which no step may go. `outcome`: its one label is the chain's.
    `marks`: its usual ones. `max_length`: tokens its trainer takes of a row by default, None where it has no limit. `schema`:
    of its rows as Parquet.
    """

    targets: tuple[TargetKind, ...]
    row: Callable[[TrainingExample, Marks], Row]
    schema: Callable[[TargetKind], pa.Schema]
    offences: Callable[[TrainingExample, Marks], Iterator[FormatError]]
    """What the texts alone show."""
    token_offences: Callable[[Row, Marks, Encoder, int | None], Iterator[FormatError]]
    """What the tokens of a row show; the last argument is how many of them the trainer takes."""
    ignores: bool = False
    neutral: bool = False
    whole: bool = False
    outcome: bool = False
    marks: Marks = Marks()
    file: FileType = FileType.jsonl
    max_length: int | None = None


def not_of_tokens(_row: Row, _marks: Marks, _encoder: Encoder, _max_length: int | None) -> Iterator[FormatError]:
    """For formats that no tokenizer reads as they are."""
    return iter(())


def no_steps(example: TrainingExample) -> Iterator[FormatError]:
    if not example.steps:
        yield FormatError(kind="no_steps", detail="it has no steps", fatal=True)


def separator_in_step(example: TrainingExample, marks: Marks) -> Iterator[FormatError]:
    """Training sees no step end there, but who splits a text at the separator to score it does."""
    for number, step in enumerate(example.steps, start=1):
        if marks.separator in step:
            detail = f"step {number} holds the separator {marks.separator!r}"
            yield FormatError(kind="separator_in_step", detail=detail, fatal=False)
            return


def mark_in_text(
    example: TrainingExample, mark: str, remedy: str = "choose another placeholder"
) -> Iterator[FormatError]:
    """The trainer takes every mark for the end of a step. Blanks around it do not make it another one."""
    bare = mark.strip() or mark
    if bare in example.problem:
        yield FormatError(kind="mark_in_text", detail=f"the problem holds the mark {bare!r}: {remedy}", fatal=True)
        return
    for number, step in enumerate(example.steps, start=1):
        if bare in step:
            yield FormatError(
                kind="mark_in_text", detail=f"step {number} holds the mark {bare!r}: {remedy}", fatal=True
            )
            return


def special_tokens(example: TrainingExample, encoder: Encoder) -> Iterator[FormatError]:
    """Text that a tokenizer takes for a control token: a turn may end there, or the text."""
    for place, text in (("the problem", example.problem), *((f"step {n}", s) for n, s in enumerate(example.steps, 1))):
        if token := encoder.special_in(text):
            detail = f"{place} spells out the token {token!r}, which the tokenizer takes for a control token"
            yield FormatError(kind="special_token", detail=detail, fatal=False)
            return


def marks_among(ids: Sequence[int], mark: int, labels: int, max_length: int | None) -> Iterator[FormatError]:
    """Whether the token `mark` stands once for each of `labels` among the tokens of a row, and how many the trainer takes."""
    found = ids.count(mark)
    if found != labels:
        detail = (
            f"its {labels} labels stand at {found} tokens, since the placeholder merges with what is around it: choose one "
            "that the tokenizer always takes as a token of its own, such as an added one"
        )
        yield FormatError(kind="placeholder_count", detail=detail, fatal=True)
    elif max_length is not None and len(ids) > max_length:
        yield from labels_lost(labels, ids[:max_length].count(mark), max_length)


def one_token(text: str, encoder: Encoder) -> Iterator[FormatError]:
    """The trainer looks for the token of `text`, so it has to be one."""
    count = len(encoder.ids(text))
    if count != 1:
        detail = f"{text!r} is {count} tokens: choose one that the tokenizer knows as one, or add it to the tokenizer"
        yield FormatError(kind="not_one_token", detail=detail, fatal=True)


def labels_lost(labels: int, kept: int, max_length: int) -> Iterator[FormatError]:
    """The trainer cuts the row, and the labels behind the cut go."""
    if kept < labels:
        lost = f"{labels - kept} of {labels} labels lost" if kept else "no label is left"
        kind = "labels_lost" if kept else "all_labels_lost"
        yield FormatError(kind=kind, detail=f"{lost} behind {max_length:,} tokens: raise max_length", fatal=False)


def too_long(tokens: int, max_length: int | None) -> Iterator[FormatError]:
    """The trainer leaves the row out."""
    if max_length is not None and tokens > max_length:
        detail = f"it has {tokens:,} tokens, and the trainer leaves out what has over {max_length:,}: raise max_length"
        yield FormatError(kind="too_long", detail=detail, fatal=False)
