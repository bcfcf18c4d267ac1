"""Stepwise supervision of TRL's PRMTrainer.

Source of the rules: `trl/experimental/prm/prm_trainer.py`, `tokenize_row`, TRL 1.13.0. Prompt and steps are tokenised one by
one, each step is followed by the separator, and the label, cast with `int()`, is that of the separator's last token. A value
of 0.99 would become 0, so there are no soft targets; -100 is what the loss passes over.
"""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.export.example import Example
from pipeline.export.formats.base import Encoder, Format, Marks, Offence, Row
from pipeline.export.formats.checks import labels_lost, no_steps, separator_in_step
from pipeline.export.settings import Target

IGNORED = -100
MAX_LENGTH = 1024
"""`PRMConfig.max_length`."""


def stepwise_row(example: Example, _marks: Marks) -> Row:
    """The columns `prompt`, `completions` and `labels`."""
    return {
        "prompt": example.problem,
        "completions": example.steps,
        "labels": [IGNORED if target is None else target for target in example.targets],
    }


def stepwise_schema(_target: Target) -> pa.Schema:
    return pa.schema(
        [("prompt", pa.string()), ("completions", pa.list_(pa.string())), ("labels", pa.list_(pa.int64()))]
    )


def stepwise_tokens(row: Row, marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[Offence]:
    """Labels behind the cut, and a separator that leaves no token to put a label on."""
    between = len(encoder.ids(marks.separator))
    if not between:
        detail = f"the separator {marks.separator!r} is no token: choose one that the tokenizer does not drop"
        yield Offence(kind="no_separator_token", detail=detail, fatal=True)
        return
    if max_length is None:
        return
    prompt, steps, labels = row["prompt"], row["completions"], row["labels"]
    assert isinstance(prompt, str)
    assert isinstance(steps, list)
    assert isinstance(labels, list)
    end = len(encoder.ids(prompt)) + (encoder.bos is not None)
    kept = 0
    for step, label in zip(steps, labels, strict=True):
        end += len(encoder.ids(step)) + between
        kept += label != IGNORED and end <= max_length
    yield from labels_lost(len(labels) - labels.count(IGNORED), kept, max_length)


def _offences(example: Example, marks: Marks) -> Iterator[Offence]:
    yield from no_steps(example)
    yield from separator_in_step(example, marks)


TRL = Format(
    targets=(Target.hard,),
    row=stepwise_row,
    schema=stepwise_schema,
    offences=_offences,
    token_offences=stepwise_tokens,
    ignores=True,
    marks=Marks(separator="\n"),
    max_length=MAX_LENGTH,
)
