"""What an export format is to the command: settings in, a plan of how rows are made out.

A trainer's layout with a row for each chain is a `Format` (see `formats.base`), and needs nothing else. What goes about it
differently, such as pairs of steps, is an `Exporter` of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Protocol

import pyarrow as pa

from pipeline.config.fields import Settings
from pipeline.core.errors import UsageError
from pipeline.export.choose import choice_of, columns_for
from pipeline.export.formats.base import Encoder, Format, Marks
from pipeline.export.made import Maker, StepRows
from pipeline.export.settings import ExportConfig, FileType


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
    """Its own settings, a section of `ExportConfig`. Formats of others have none yet."""

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

    def plan(self, config: ExportConfig, encoder: Encoder | None) -> Plan:
        layout = self.layout
        choice = choice_of(config, layout)
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
