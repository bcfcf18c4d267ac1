r"""What SCAN's trainer reads: a score for every step, trained with binary cross entropy.

Source of the rules: `src/train_prm/prm_dataset.py` and `prm_trainer.py` of yyDing1/SCAN-PRM (commit f33fdc7). Problem and
steps are tokenised one by one, without a token in front; a step's score is that of the last token of `\n\n` behind it. Its
evaluation counts a score of 0.5 as good. A row is cut at `--max_length`, 8,192 in its script.
"""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.export.example import Example
from pipeline.export.formats.base import Encoder, Format, Marks, Offence, Row
from pipeline.export.formats.checks import labels_lost, no_steps, separator_in_step
from pipeline.export.settings import Target

SEPARATOR = "\n\n"
MAX_LENGTH = 8192


def _row(example: Example, _marks: Marks) -> Row:
    scores = [float(target) for target in example.targets if isinstance(target, int | float)]
    return {"question": example.problem, "steps": example.steps, "scores": scores}


def _schema(_target: Target) -> pa.Schema:
    return pa.schema([("question", pa.string()), ("steps", pa.list_(pa.string())), ("scores", pa.list_(pa.float64()))])


def _offences(example: Example, marks: Marks) -> Iterator[Offence]:
    if marks.separator != SEPARATOR:
        detail = f"SCAN would put {SEPARATOR!r} between its steps, whatever is asked for: leave separator out"
        yield Offence(kind="other_separator", detail=detail, fatal=True)
    yield from no_steps(example)
    yield from separator_in_step(example, marks)


def _token_offences(row: Row, _marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[Offence]:
    if max_length is None:
        return
    question, steps = row["question"], row["steps"]
    assert isinstance(question, str)
    assert isinstance(steps, list)
    end = len(encoder.ids(question + SEPARATOR))
    kept = 0
    for step in steps:
        end += len(encoder.ids(step)) + 1
        kept += end <= max_length
    yield from labels_lost(len(steps), kept, max_length)


SCAN = Format(
    targets=(Target.soft, Target.hard),
    row=_row,
    schema=_schema,
    offences=_offences,
    token_offences=_token_offences,
    marks=Marks(separator=SEPARATOR),
    max_length=MAX_LENGTH,
)
