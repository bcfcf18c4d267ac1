"""An export format: a problem with its good steps as one text, and how many of them are good."""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.export.example import Example
from pipeline.export.formats.base import Format, Marks, Offence, Row
from pipeline.export.formats.checks import no_steps, not_of_tokens
from pipeline.export.settings import Target


def _row(example: Example, marks: Marks) -> Row:
    good = [step for step, target in zip(example.steps, example.targets, strict=True) if target]
    return {"text": marks.separator.join([example.problem, *good]), "good": len(good)}


def _schema(_target: Target) -> pa.Schema:
    columns: list[tuple[str, pa.DataType]] = [("text", pa.string()), ("good", pa.int64())]
    return pa.schema(columns)


def _offences(example: Example, _marks: Marks) -> Iterator[Offence]:
    return no_steps(example)


LINES = Format(
    targets=(Target.hard,),
    row=_row,
    schema=_schema,
    offences=_offences,
    token_offences=not_of_tokens,
    ignores=True,
    marks=Marks(separator="\n"),
)
