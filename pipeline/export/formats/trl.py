"""Stepwise supervision of TRL's PRMTrainer.

Source of the rules: `trl/experimental/prm/prm_trainer.py`, `tokenize_row`, TRL 1.13.0. Prompt and steps are tokenised one by
one, each step is followed by the separator, and the label, cast with `int()`, is that of the separator's last token. A value of
0.99 would become 0, so there are no soft targets; -100 is what the loss passes over.
"""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.export.example import Example
from pipeline.export.formats.base import Encoder, Format, Marks, Offence, Row
from pipeline.export.settings import Target

IGNORED = -100
MAX_LENGTH = 1024
"""`PRMConfig.max_length`."""


def _row(example: Example, _marks: Marks) -> Row:
    return {
        "prompt": example.problem,
        "completions": example.steps,
        "labels": [IGNORED if target is None else target for target in example.targets],
    }


def _schema(_target: Target) -> pa.Schema:
    return pa.schema(
        [("prompt", pa.string()), ("completions", pa.list_(pa.string())), ("labels", pa.list_(pa.int64()))]
    )


def separator_in_step(example: Example, marks: Marks) -> Iterator[Offence]:
    """Training sees no step end there, but who splits a text at the separator to score it does."""
    for number, step in enumerate(example.steps, start=1):
        if marks.separator in step:
            detail = f"step {number} holds the separator {marks.separator!r}"
            yield Offence(kind="separator_in_step", detail=detail, fatal=False)
            return


def _token_offences(row: Row, marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[Offence]:
    raise NotImplementedError


TRL = Format(
    targets=(Target.hard,),
    row=_row,
    schema=_schema,
    offences=separator_in_step,
    token_offences=_token_offences,
    ignores=True,
    marks=Marks(separator="\n"),
    max_length=MAX_LENGTH,
)
