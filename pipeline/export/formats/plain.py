"""Plain rows for your own trainer: steps with their targets, or a whole solution with its outcome.

**Steps** and their targets are lists of the same length, with None for a missing label. `labels` holds 1, 0 and 2 for neutral;
`scores` holds probabilities; `n_correct` and `n_rollouts` hold correct and graded rollouts. The reader is unknown, so the only
check is that there are steps.

**Outcomes**, for outcome reward models: a whole solution, and whether its final answer is correct. There is no single reader:
the columns are those on which classifiers and ImplicitPRM are trained. `label` is 1 or 0. The check assumes that a row longer
than `max_length` tokens, problem and solution together, is cut at its end, which holds the answer.
"""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from pipeline.core.errors import UsageError
from pipeline.core.tables import CONSENSUS, LABELS, LABELS_CONSENSUS
from pipeline.export.base import LayoutExporter, Plan, labels_as_they_are
from pipeline.export.example import TrainingExample
from pipeline.export.formats.base import Encoder, Format, FormatError, Marks, Row, columns, no_steps
from pipeline.export.settings import ExportConfig, FileType, TargetKind

_NUMBERS = pa.list_(pa.int64())
_COLUMNS: dict[TargetKind, list[tuple[str, pa.DataType]]] = {
    TargetKind.hard: [("labels", _NUMBERS)],
    TargetKind.soft: [("scores", pa.list_(pa.float64()))],
    TargetKind.counts: [("n_correct", _NUMBERS), ("n_rollouts", _NUMBERS)],
}


def _row(example: TrainingExample, _marks: Marks) -> Row:
    return {
        "chain_id": example.chain_id,
        "problem_id": example.problem_id,
        "source_id": example.source_id,
        "problem": example.problem,
        "steps": list(example.steps),
        **_targets(example),
        "outcome": example.outcome,
        "gold_answer": example.gold_answer,
        "final_answer": example.final_answer,
    }


def _targets(example: TrainingExample) -> Row:
    targets = example.targets
    known = next((target for target in targets if target is not None), 0)
    if isinstance(known, tuple):
        pairs = [target if isinstance(target, tuple) else (None, None) for target in targets]
        return {"n_correct": [correct for correct, _ in pairs], "n_rollouts": [rollouts for _, rollouts in pairs]}
    return {"scores" if isinstance(known, float) else "labels": targets}


def _schema(target: TargetKind) -> pa.Schema:
    named: list[tuple[str, pa.DataType]] = [
        ("chain_id", pa.string()),
        ("problem_id", pa.string()),
        ("source_id", pa.string()),
        ("problem", pa.string()),
        ("steps", pa.list_(pa.string())),
        *_COLUMNS[target],
        ("outcome", pa.bool_()),
        ("gold_answer", pa.string()),
        ("final_answer", pa.string()),
    ]
    return pa.schema(named)


STEPS = Format(
    targets=(TargetKind.soft, TargetKind.hard, TargetKind.counts),
    row=_row,
    schema=_schema,
    ignores=True,
    neutral=True,
    file=FileType.parquet,
)


class ParquetExporter(LayoutExporter):
    """Writes the labels unchanged, unless `target` is set."""

    def plan(self, config: ExportConfig, encoder: Encoder | None) -> Plan:
        return _labels_as_they_are(config) if config.target is None else super().plan(config, encoder)

    def ineffective_settings(self, config: ExportConfig) -> dict[str, str]:
        found = {
            "tokenizer": "format=parquet has no trainer, so nothing is checked; leave it out",
            "separator": "format=parquet stores steps as lists; leave it out",
            "placeholder": "format=parquet has none; leave it out",
        }
        return {key: why for key, why in found.items() if getattr(config, key) is not None}


PARQUET = ParquetExporter(STEPS)


def _labels_as_they_are(config: ExportConfig) -> Plan:
    for key in ("uncertain", "neutral", "after_error", "threshold", "soft"):
        if getattr(config, key) is not None:
            raise UsageError(
                f"{key}: format=parquet without a target writes labels unchanged; add target=hard, soft or counts"
            )
    if config.file not in (None, FileType.parquet):
        raise UsageError(f"file={config.file.value}: format=parquet without a target writes Parquet")
    return Plan(
        make=labels_as_they_are,
        schema=LABELS.schema,
        file=FileType.parquet,
        marks=Marks(),
        columns=tuple(LABELS.schema.names),
    )


def with_consensus(plan: Plan) -> Plan:
    """The plan for labels by consensus: their own columns are written too."""
    if plan.columns is None:
        return plan
    own = map(LABELS_CONSENSUS.schema.field, CONSENSUS)
    return replace(plan, columns=(*plan.columns, *CONSENSUS), schema=pa.schema([*plan.schema, *own]))


def _orm_row(example: TrainingExample, marks: Marks) -> Row:
    return {
        "prompt": example.problem,
        "response": marks.separator.join(example.steps),
        "label": int(example.outcome is True),
    }


def _orm_offences(example: TrainingExample, _marks: Marks) -> Iterator[FormatError]:
    yield from no_steps(example)
    if example.outcome is None:
        yield FormatError(kind="no_outcome", detail="its final answer was not judged", fatal=True)


def _orm_token_offences(row: Row, _marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[FormatError]:
    if max_length is None:
        return
    tokens = len(encoder.ids(str(row["prompt"]))) + len(encoder.ids(str(row["response"])))
    if tokens > max_length:
        detail = f"it has {tokens:,} tokens, so its end with the answer is cut off at {max_length:,}: raise max_length"
        yield FormatError(kind="end_lost", detail=detail, fatal=False)


ORM = Format(
    targets=(TargetKind.hard,),
    row=_orm_row,
    schema=columns(("prompt", pa.string()), ("response", pa.string()), ("label", pa.int64())),
    offences=_orm_offences,
    token_offences=_orm_token_offences,
    ignores=True,
    neutral=True,
    whole=True,
    outcome=True,
    marks=Marks(separator="\n"),
)
