"""The interface of export formats: an `Exporter` turns settings into a `Plan`, which makes rows from chains or gives reasons
why a chain has no row.

A trainer's layout with one row per chain is a `Format` (see `formats.base`) and needs no exporter of its own. Anything else,
such as pairs of steps, is an `Exporter`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from pipeline.config.fields import Settings
from pipeline.core.errors import UsageError
from pipeline.estimators.target_places import NO_PLACES, TargetPlaces
from pipeline.export.example import NO_LABELS, NO_STEPS, LabelCounts, StepCounts, count_labels
from pipeline.export.formats.base import Encoder, Format, FormatError, Marks, Row, special_tokens
from pipeline.export.settings import ExportConfig, FileType, TargetKind
from pipeline.export.targets import LabelRow, LeftOutChains, TargetChoice, columns_for, target_choice, training_example
from pipeline.storage.stored_trees import ProblemTree
from pipeline.trees.posterior import Posterior


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRow:
    """The result for one chain. `row` is None if no row can be made, or if the row of `labels` itself is written. `places`: of
    the targets to train on. `steps`: of the chain, if rows have labels of steps. `others`: more chains that the row is made
    from, such as all chains of a problem."""

    chain: LabelRow
    others: tuple[LabelRow, ...] = ()
    row: Row | None = None
    labels: LabelCounts = NO_LABELS
    places: TargetPlaces = NO_PLACES
    steps: StepCounts = NO_STEPS
    offences: tuple[FormatError, ...] = ()
    left_out: LeftOutChains | None = None


class Maker(Protocol):
    """Makes rows from all chains of one problem."""

    def __call__(self, chains: Sequence[LabelRow]) -> Iterator[ExportRow]: ...


class TreeMaker(Protocol):
    """Makes rows from all chains of one problem and the rollout tree that grows from them. `values`: what the rollouts say of
    each node of the tree. A chain that is neither left out nor in an `ExportRow` is not written either, so give a reason for
    each chain of a problem without rows."""

    def __call__(
        self, chains: Sequence[LabelRow], tree: ProblemTree, values: Sequence[Posterior]
    ) -> Iterator[ExportRow]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How an export makes its rows: from chains by `make`, or from rollout trees by `of_trees`; one of the two. `columns`: the
    columns of `labels` that are written unchanged; None if rows are made. `reads`: the optional columns of a `LabelRow` that
    this export needs. `target`: that of a step; None if steps have none. `takes_values`: the format can have soft targets.
    `outcomes`: rows have the outcomes of chains, and no labels of steps."""

    schema: pa.Schema
    file: FileType
    marks: Marks
    make: Maker | None = None
    of_trees: TreeMaker | None = None
    reads: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    target: TargetKind | None = None
    takes_values: bool = False
    outcomes: bool = False

    def __post_init__(self) -> None:
        if (self.make is None) is (self.of_trees is None):
            raise ValueError("a plan makes rows by make or by of_trees: give one of the two")


class Exporter(Protocol):
    """Exports one format. An implementation defines `plan`; the rest has defaults."""

    Config: ClassVar[type[Settings] | None] = None
    """The format's own settings, if any: a dataclass whose SECTION is its name on the command line. See `ExportConfig.own`."""

    def plan(self, config: ExportConfig, encoder: Encoder | None) -> Plan:
        """Plan the export. Raises UsageError for settings that contradict each other."""
        ...

    def ineffective_settings(self, config: ExportConfig) -> Mapping[str, str]:
        """Key -> reason, for given settings that have no effect. They are refused, because the user expects an effect."""
        return {}

    def additional_files(self, config: ExportConfig, plan: Plan, files: Mapping[str, Path]) -> Mapping[str, str]:
        """Name -> text of additional files in the folder. `files`: split -> final path of its file of rows."""
        return {}


class LayoutExporter(Exporter):
    """Exports a `Format`: one row per chain."""

    def __init__(self, layout: Format) -> None:
        self.layout = layout

    def layout_for(self, own: Any) -> Format:
        """The layout for the format's own settings; a subclass may make it depend on them."""
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
            target=None if layout.outcome else choice.target,
            takes_values=TargetKind.soft in layout.targets,
            outcomes=layout.outcome,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRows:
    """Makes one row per chain in a trainer's layout. Tokens are checked only with an encoder."""

    layout: Format
    choice: TargetChoice
    marks: Marks
    encoder: Encoder | None
    max_length: int | None

    def __call__(self, chains: Sequence[LabelRow]) -> Iterator[ExportRow]:
        for chain in chains:
            example = training_example(chain, self.choice)
            if isinstance(example, LeftOutChains):
                yield ExportRow(chain=chain, left_out=example)
                continue
            offences = tuple(self.layout.offences(example, self.marks))
            row = None if any(offence.fatal for offence in offences) else self.layout.row(example, self.marks)
            if row is not None and self.encoder is not None:
                offences += tuple(special_tokens(example, self.encoder))
                offences += tuple(self.layout.token_offences(row, self.marks, self.encoder, self.max_length))
            labels = count_labels([_outcome(chain)] if self.layout.outcome else example.labels)
            steps = NO_STEPS if self.layout.outcome else example.counts
            yield ExportRow(chain=chain, row=row, labels=labels, places=example.places, steps=steps, offences=offences)


def refuse_torn_rows(made: Sequence[ExportRow], plan: Plan) -> None:
    """Raise ValueError, or an error of Arrow, unless the rows match the plan's schema and can be written as JSON."""
    for each in made:
        if each.row is not None and each.row.keys() != set(plan.schema.names):
            raise ValueError(f"a row has {', '.join(each.row)}, but the schema has {', '.join(plan.schema.names)}")
        expected = (
            plan.columns is None and each.left_out is None and not any(offence.fatal for offence in each.offences)
        )
        if each.row is None and expected:
            raise ValueError(f"chain {each.chain.chain_id} has no row")
    rows = [each.row for each in made if each.row is not None]
    json.dumps(rows, allow_nan=False)
    if plan.columns is None:
        pa.RecordBatch.from_pylist(rows, schema=plan.schema)


def labels_as_they_are(chains: Sequence[LabelRow]) -> Iterator[ExportRow]:
    """Write the rows of `labels` themselves."""
    for chain in chains:
        steps = StepCounts(written=len(chain.label), ends=int(chain.outcome is not None))
        yield ExportRow(chain=chain, labels=count_labels(chain.label), steps=steps)


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
            f"separator={marks.separator!r} contains the placeholder {marks.placeholder!r}, so each step would have two"
        )
    return marks


def _unescaped(mark: str | None) -> str | None:
    r"""Replace `\n` by a newline, which a command line cannot contain."""
    return None if mark is None else mark.replace("\\n", "\n")


def _outcome(chain: LabelRow) -> int | None:
    return None if chain.outcome is None else int(chain.outcome)
