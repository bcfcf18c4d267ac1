"""What an export format is to the command: settings in, a plan of how rows are made out; and how rows are made of chains, or
the reasons why there are none.

A trainer's layout with a row for each chain is a `Format` (see `formats.base`), and needs nothing else. What goes about it
differently, such as pairs of steps, is an `Exporter` of its own.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from pipeline.config.fields import Settings
from pipeline.core.errors import UsageError
from pipeline.export.example import NO_LABELS, LabelCounts, count_labels
from pipeline.export.formats.base import Encoder, Format, FormatError, Marks, Row, special_tokens
from pipeline.export.settings import ExportConfig, FileType
from pipeline.export.targets import LabelRow, LeftOutChains, TargetChoice, columns_for, target_choice, training_example


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What has become of a chain. `row` is None where there can be none, and where the labels' own row is meant."""

    chain: LabelRow
    row: Row | None = None
    labels: LabelCounts = NO_LABELS
    offences: tuple[FormatError, ...] = ()
    left_out: LeftOutChains | None = None


class Maker(Protocol):
    """How rows are made of all chains of one problem."""

    def __call__(self, chains: Sequence[LabelRow]) -> Iterator[Made]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`columns`: those of `labels` that are written as they are; None where rows are made. `reads`: of the columns of a
    `LabelRow` that not every export needs, those that this one does."""

    make: Maker
    schema: pa.Schema
    file: FileType
    marks: Marks
    reads: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None


class Exporter(Protocol):
    """How a format is exported. `plan` is its own; the rest has a default."""

    Config: ClassVar[type[Settings] | None] = None
    """Its own settings, if it has some: a dataclass whose SECTION is their name on the command line. See `ExportConfig.own`."""

    takes_columns: ClassVar[bool] = False
    """It writes `columns` of the labels as they are."""

    def plan(self, config: ExportConfig, encoder: Encoder | None) -> Plan:
        """Raises UsageError for settings that do not go together."""
        ...

    def useless(self, config: ExportConfig) -> Mapping[str, str]:
        """Settings that are given and would do nothing: key -> why, to be refused. Who gives one expects otherwise."""
        return {}

    def beside(self, config: ExportConfig, plan: Plan, files: Mapping[str, Path]) -> Mapping[str, str]:
        """Texts that go beside the files of rows, by name. `files`: the paths of those by split, as they will be."""
        return {}


class LayoutExporter(Exporter):
    """Exports a `Format`: a row for each chain."""

    def __init__(self, layout: Format) -> None:
        self.layout = layout

    def layout_for(self, own: Any) -> Format:
        """The layout, which may depend on the format's own settings."""
        return self.layout

    def plan(self, config: ExportConfig, encoder: Encoder | None) -> Plan:
        layout = self.layout_for(config.own)
        choice = target_choice(config, layout)
        marks = marks_of(config, layout.marks)
        return Plan(
            make=StepRows(
                layout=layout,
                choice=choice,
                marks=marks,
                encoder=encoder,
                max_length=config.max_length or layout.max_length,
            ),
            schema=layout.schema(choice.target),
            file=config.file or layout.file,
            marks=marks,
            reads=columns_for(choice),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRows:
    """A row for each chain, in a trainer's layout. Without an encoder nothing is said of tokens."""

    layout: Format
    choice: TargetChoice
    marks: Marks
    encoder: Encoder | None
    max_length: int | None

    def __call__(self, chains: Sequence[LabelRow]) -> Iterator[Made]:
        for chain in chains:
            example = training_example(chain, self.choice)
            if isinstance(example, LeftOutChains):
                yield Made(chain=chain, left_out=example)
                continue
            offences = tuple(self.layout.offences(example, self.marks))
            row = None if any(offence.fatal for offence in offences) else self.layout.row(example, self.marks)
            if row is not None and self.encoder is not None:
                offences += tuple(special_tokens(example, self.encoder))
                offences += tuple(self.layout.token_offences(row, self.marks, self.encoder, self.max_length))
            labels = count_labels([_outcome(chain)] if self.layout.outcome else example.labels)
            yield Made(chain=chain, row=row, labels=labels, offences=offences)


def refuse_torn_rows(made: Sequence[Made], plan: Plan) -> None:
    """Raise ValueError, or what Arrow raises, unless rows are as the plan's schema says, and JSON can hold them."""
    for each in made:
        if each.row is not None and each.row.keys() != set(plan.schema.names):
            raise ValueError(f"a row has {', '.join(each.row)}, and the schema {', '.join(plan.schema.names)}")
        expected = (
            plan.columns is None and each.left_out is None and not any(offence.fatal for offence in each.offences)
        )
        if each.row is None and expected:
            raise ValueError(f"chain {each.chain.chain_id} has no row")
    rows = [each.row for each in made if each.row is not None]
    json.dumps(rows, allow_nan=False)
    if plan.columns is None:
        pa.RecordBatch.from_pylist(rows, schema=plan.schema)


def labels_as_they_are(chains: Sequence[LabelRow]) -> Iterator[Made]:
    """No rows of our own: the labels' are meant."""
    for chain in chains:
        yield Made(chain=chain, labels=count_labels(chain.label))


def marks_of(config: ExportConfig, usual: Marks) -> Marks:
    for key, mark, known in (
        ("separator", config.separator, usual.separator),
        ("placeholder", config.placeholder, usual.placeholder),
    ):
        if mark is not None and not known:
            raise UsageError(f"{key}={mark!r}: format={config.format} has no {key}")
        if mark == "":
            raise UsageError(f"{key} is empty: leave it out for {known!r}")
    marks = replace(
        usual,
        separator=_unescaped(config.separator) or usual.separator,
        placeholder=_unescaped(config.placeholder) or usual.placeholder,
    )
    if marks.placeholder and (marks.placeholder.strip() or marks.placeholder) in marks.separator:
        raise UsageError(
            f"separator={marks.separator!r} holds the placeholder {marks.placeholder!r}, so that steps would have two of them"
        )
    return marks


def _unescaped(mark: str | None) -> str | None:
    r"""`\n` for a line end, which a command line cannot hold."""
    return None if mark is None else mark.replace("\\n", "\n")


def _outcome(chain: LabelRow) -> int | None:
    return None if chain.outcome is None else int(chain.outcome)
