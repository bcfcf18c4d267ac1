"""The settings of an export -> how its rows are made, and into which kind of file they go."""

from dataclasses import dataclass, replace

import pyarrow as pa

from pipeline.core.errors import UsageError
from pipeline.core.schemas import LABELS
from pipeline.export.choose import PLACE, VALUES, Choice, choice_of, columns_for
from pipeline.export.formats import preference
from pipeline.export.formats.base import Encoder, Marks
from pipeline.export.formats.table import FORMATS
from pipeline.export.made import Maker, StepRows, labels_as_they_are
from pipeline.export.paired import PairRows
from pipeline.export.settings import (
    Balance,
    DecontaminateConfig,
    ExportConfig,
    ExportFormat,
    FileType,
    Neutral,
    PreferenceConfig,
    Target,
    Undecided,
)


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


def refuse_useless(config: ExportConfig) -> None:
    """Raise UsageError for a setting that would do nothing beside the others: who gives it expects otherwise."""
    bare = config.format is ExportFormat.parquet
    for useless, told in (
        (
            config.max_length is not None and not config.tokenizer,
            "max_length: tokens are counted by tokenizer=..., add it",
        ),
        (
            config.neutral is not None and config.threshold is not None,
            "neutral: a threshold labels anew, and leaves no neutral steps; leave one of them out",
        ),
        (
            config.decontaminate != DecontaminateConfig() and not config.decontaminate.paths,
            "decontaminate.column and .ngram are for decontaminate.paths=[...], add it",
        ),
        (
            config.preference != PreferenceConfig() and config.format is not ExportFormat.preference,
            f"preference.*: format={config.format.value} has no pairs; leave it out",
        ),
        (bare and config.tokenizer is not None, "tokenizer: format=parquet is no trainer's, so nothing is checked"),
        (bare and config.separator is not None, "separator: format=parquet keeps steps apart; leave it out"),
        (bare and config.placeholder is not None, "placeholder: format=parquet has none; leave it out"),
    ):
        if useless:
            raise UsageError(told)


def plan_of(config: ExportConfig, encoder: Encoder | None) -> Plan:
    """Raises UsageError for settings that do not go together."""
    if config.columns and (config.format is not ExportFormat.parquet or config.target is not None):
        raise UsageError(
            "columns=... is for format=parquet without a target: other rows have the columns of their format"
        )
    if config.format is ExportFormat.parquet and config.target is None:
        return _labels_as_they_are(config)
    if config.format is ExportFormat.preference:
        return _pairs(config, encoder)
    layout = FORMATS[config.format]
    choice = choice_of(config, layout)
    marks = _marks(config, layout.marks)
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


def _labels_as_they_are(config: ExportConfig) -> Plan:
    twice = next((column for column in config.columns if config.columns.count(column) > 1), None)
    if twice:
        raise UsageError(f"columns: {twice} is named twice")
    unknown = [column for column in config.columns if column not in LABELS.names]
    if unknown:
        raise UsageError(f"columns: labels have no column {unknown[0]}; they have {', '.join(LABELS.names)}")
    for key in ("undecided", "neutral", "after_error", "threshold", "soft"):
        if getattr(config, key) is not None:
            raise UsageError(
                f"{key}: format=parquet without a target writes labels as they are; add target=hard, soft or counts"
            )
    if config.file not in (None, FileType.parquet):
        raise UsageError(f"file={config.file.value}: format=parquet without a target writes Parquet")
    columns = tuple(config.columns or LABELS.names)
    schema = pa.schema([LABELS.field(column) for column in columns])
    return Plan(make=labels_as_they_are, schema=schema, file=FileType.parquet, marks=Marks(), columns=columns)


def _pairs(config: ExportConfig, encoder: Encoder | None) -> Plan:
    for key in ("target", "undecided", "after_error"):
        if getattr(config, key) is not None:
            raise UsageError(f"{key}: format=preference pairs single steps by their labels or values; leave it out")
    if config.balance is not Balance.none:
        raise UsageError(f"balance={config.balance.value}: every pair has a good step and a bad one; leave it out")
    marks = _marks(config, Marks(separator=preference.SEPARATOR))
    choice = Choice(
        target=Target.hard,
        soft=config.soft,
        threshold=config.threshold,
        undecided=Undecided.ignore,
        neutral=config.neutral or Neutral.keep,
        after_error=True,
        whole=True,
    )
    return Plan(
        make=PairRows(
            choice=choice,
            config=config.preference,
            separator=marks.separator,
            encoder=encoder,
            max_length=config.max_length or preference.MAX_LENGTH,
        ),
        schema=preference.schema(config.preference.reader),
        file=config.file or FileType.jsonl,
        marks=marks,
        reads=(*VALUES, *PLACE),
    )


def _marks(config: ExportConfig, usual: Marks) -> Marks:
    for key, mark, known in (
        ("separator", config.separator, usual.separator),
        ("placeholder", config.placeholder, usual.placeholder),
    ):
        if mark is not None and not known:
            raise UsageError(f"{key}={mark!r}: format={config.format.value} has no {key}")
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
