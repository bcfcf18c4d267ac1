"""What a format is: the row that a trainer reads, and what that trainer would misread."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from pipeline.export.example import Example
from pipeline.export.settings import FileType, Target

Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What stands between steps, and for their rewards; empty where a format has no such thing."""

    separator: str = ""
    placeholder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offence:
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

    targets: tuple[Target, ...]
    row: Callable[[Example, Marks], Row]
    schema: Callable[[Target], pa.Schema]
    offences: Callable[[Example, Marks], Iterator[Offence]]
    """What the texts alone show."""
    token_offences: Callable[[Row, Marks, Encoder, int | None], Iterator[Offence]]
    """What the tokens of a row show; the last argument is how many of them the trainer takes."""
    ignores: bool = False
    neutral: bool = False
    whole: bool = False
    outcome: bool = False
    marks: Marks = Marks()
    file: FileType = FileType.jsonl
    max_length: int | None = None
