"""Rows for outcome reward models: a whole solution, and whether its final answer is right.

No single reader: the columns are those that classifiers and ImplicitPRM are trained on. `label` is 1 or 0. A row longer than
`max_length` tokens, problem and solution together, is taken to be cut at its end, where the answer stands.
"""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.export.example import Example
from pipeline.export.formats.base import Encoder, Format, Marks, Offence, Row
from pipeline.export.formats.checks import no_steps
from pipeline.export.settings import Target


def _row(example: Example, marks: Marks) -> Row:
    return {
        "prompt": example.problem,
        "response": marks.separator.join(example.steps),
        "label": int(example.outcome is True),
    }


def _schema(_target: Target) -> pa.Schema:
    columns: list[tuple[str, pa.DataType]] = [("prompt", pa.string()), ("response", pa.string()), ("label", pa.int64())]
    return pa.schema(columns)


def _offences(example: Example, _marks: Marks) -> Iterator[Offence]:
    yield from no_steps(example)
    if example.outcome is None:
        yield Offence(kind="no_outcome", detail="its final answer was not judged", fatal=True)


def _token_offences(row: Row, _marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[Offence]:
    if max_length is None:
        return
    tokens = len(encoder.ids(str(row["prompt"]))) + len(encoder.ids(str(row["response"])))
    if tokens > max_length:
        detail = f"it has {tokens:,} tokens, and its end, where the answer stands, goes behind {max_length:,}: raise max_length"
        yield Offence(kind="end_lost", detail=detail, fatal=False)


ORM = Format(
    targets=(Target.hard,),
    row=_row,
    schema=_schema,
    offences=_offences,
    token_offences=_token_offences,
    ignores=True,
    neutral=True,
    whole=True,
    outcome=True,
    marks=Marks(separator="\n"),
)
