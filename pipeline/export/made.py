"""Chains -> rows of a format, or the reasons why there are none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.export.choose import Choice, LabelRow, LeftOut, example_of
from pipeline.export.example import NO_LABELS, LabelCounts, counted
from pipeline.export.formats.base import Encoder, Format, Marks, Offence, Row
from pipeline.export.formats.checks import special_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What has become of a chain. `row` is None where there can be none, and where the labels' own row is meant."""

    chain: LabelRow
    row: Row | None = None
    labels: LabelCounts = NO_LABELS
    offences: tuple[Offence, ...] = ()
    left_out: LeftOut | None = None


class Maker(Protocol):
    """How rows are made of all chains of one problem."""

    def __call__(self, chains: Sequence[LabelRow]) -> Iterator[Made]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRows:
    """A row for each chain, in a trainer's layout. Without an encoder nothing is said of tokens."""

    layout: Format
    choice: Choice
    marks: Marks
    encoder: Encoder | None
    max_length: int | None

    def __call__(self, chains: Sequence[LabelRow]) -> Iterator[Made]:
        for chain in chains:
            example = example_of(chain, self.choice)
            if isinstance(example, LeftOut):
                yield Made(chain=chain, left_out=example)
                continue
            offences = tuple(self.layout.offences(example, self.marks))
            row = None if any(offence.fatal for offence in offences) else self.layout.row(example, self.marks)
            if row is not None and self.encoder is not None:
                offences += tuple(special_tokens(example, self.encoder))
                offences += tuple(self.layout.token_offences(row, self.marks, self.encoder, self.max_length))
            labels = counted([_outcome(chain)] if self.layout.outcome else example.labels)
            yield Made(chain=chain, row=row, labels=labels, offences=offences)


def labels_as_they_are(chains: Sequence[LabelRow]) -> Iterator[Made]:
    """No rows of our own: the labels' are meant."""
    for chain in chains:
        yield Made(chain=chain, labels=counted(chain.label))


def _outcome(chain: LabelRow) -> int | None:
    return None if chain.outcome is None else int(chain.outcome)
