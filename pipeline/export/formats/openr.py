r"""What OpenR's PRM fine-tuning reads: one text with five line ends behind every step, and a sign for each of them.

Source of the rules: `prm/code/finetune_qwen.py` of openreasoner/openr (commit 882cec5), made as its
`preprocess/src/preprocessors/math_shepherd.py` makes it. The tag is looked for by the last token of a blank and the tag,
which is one token for Qwen2.5. Signs in excess of the tags are cut without a word; too few stop the training. A row is cut
at 2,048 tokens.
"""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.export.example import Example
from pipeline.export.formats.base import Encoder, Format, Marks, Offence, Row
from pipeline.export.formats.checks import mark_in_text, marks_among, no_steps
from pipeline.export.formats.numbered import numbered
from pipeline.export.settings import FileType, Target

TAG = "\n\n\n\n\n"
MAX_LENGTH = 2048


def _row(example: Example, marks: Marks) -> Row:
    return {
        "question": example.problem,
        "process": " ".join([f"{step} {marks.placeholder}" for step in numbered(example.steps)]),
        "label": ["+" if target else "-" for target in example.targets],
    }


def _schema(_target: Target) -> pa.Schema:
    return pa.schema([("question", pa.string()), ("process", pa.string()), ("label", pa.list_(pa.string()))])


def _offences(example: Example, marks: Marks) -> Iterator[Offence]:
    yield from no_steps(example)
    yield from mark_in_text(example, marks.placeholder)


def _token_offences(row: Row, marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[Offence]:
    labels = row["label"]
    assert isinstance(labels, list)
    if len(encoder.ids(" + -")) != len("+-"):
        detail = "' + -' is not two tokens, which OpenR takes for good and bad: use another tokenizer"
        yield Offence(kind="not_one_token", detail=detail, fatal=True)
        return
    ids = encoder.ids(f"{row['question']} {row['process']}")
    yield from marks_among(ids, encoder.ids(f" {marks.placeholder}")[-1], len(labels), max_length)


OPENR = Format(
    targets=(Target.hard,),
    row=_row,
    schema=_schema,
    offences=_offences,
    token_offences=_token_offences,
    marks=Marks(placeholder=TAG),
    file=FileType.json,
    max_length=MAX_LENGTH,
)
