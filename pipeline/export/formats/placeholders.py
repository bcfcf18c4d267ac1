"""Rows with a placeholder after each step, at the place of the step's label or score.

**OpenRLHF.** Source of the rules of its `train_prm`: `openrlhf/datasets/process_reward_dataset.py` and `PRMLoss` in
`openrlhf/models/loss.py`, OpenRLHF 0.9.5. A row is one text with the placeholder after every labelled step, and a list with one
label per placeholder: `+` and `-`, or probabilities. Labels are assigned to the placeholder's tokens in order. Surplus labels
are dropped silently, and a single label is assigned to all tokens. The text and its labels are cut at `--max_len`.

Release 0.9.5 cannot train on probabilities: it puts them into a tensor of integers and stops at the first row. The line
`labels = torch.full_like(input_ids, -100)` needs `dtype=label_tensor.dtype`. So hard labels are the default: an export has to
run with the trainer as it is released.

**Qwen.** Rows for PRMs that are used like Qwen2.5-Math-PRM: the score is read at `<extra_0>` after every step. Source of the
rules: the model card of Qwen/Qwen2.5-Math-PRM-7B, which defines `system`, `query` and `response`. The card's chat is system,
user and assistant; the assistant's text is the steps, each followed by the placeholder. Qwen has published no training code.
Its paper (arXiv 2501.07301) trains with cross entropy and removes all steps after the first bad one.
"""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.export.example import TrainingExample
from pipeline.export.formats.base import (
    Encoder,
    Format,
    FormatError,
    Marks,
    Row,
    marks_among,
    one_token,
    placeholder_in_text,
)
from pipeline.export.settings import TargetKind

PLACEHOLDER = "ки"
"""Math-Shepherd's tag, which OpenRLHF's examples use."""
MAX_LENGTH = 2048
"""`--max_len`."""


def _row(example: TrainingExample, marks: Marks) -> Row:
    mark = marks.placeholder
    ending = mark if mark[0].isspace() else f" {mark}"
    texts = [
        step if target is None else step + ending for step, target in zip(example.steps, example.targets, strict=True)
    ]
    values = [target for target in example.targets if target is not None]
    soft = bool(values) and isinstance(values[0], float)
    return {
        "input": f"{example.problem} {marks.separator.join(texts)}",
        "value": values if soft else ["+" if value else "-" for value in values],
    }


def _schema(target: TargetKind) -> pa.Schema:
    value = pa.float64() if target is TargetKind.soft else pa.string()
    return pa.schema([("input", pa.string()), ("value", pa.list_(value))])


def _token_offences(row: Row, marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[FormatError]:
    text, value = row["input"], row["value"]
    assert isinstance(text, str)
    assert isinstance(value, list)
    signs = sorted({sign for sign in value if isinstance(sign, str)})
    wrong = [offence for known in (marks.placeholder, *signs) for offence in one_token(known, encoder)]
    if wrong:
        yield from wrong
        return
    yield from marks_among(encoder.ids(text), encoder.ids(marks.placeholder)[0], len(value), max_length)


OPENRLHF = Format(
    targets=(TargetKind.hard, TargetKind.soft),
    row=_row,
    schema=_schema,
    offences=placeholder_in_text,
    token_offences=_token_offences,
    ignores=True,
    marks=Marks(separator="\n", placeholder=PLACEHOLDER),
    max_length=MAX_LENGTH,
)


QWEN_PLACEHOLDER = "<extra_0>"
SYSTEM = "Please reason step by step, and put your final answer within \\boxed{}."


def messages(row: Row, marks: Marks) -> list[dict[str, str]]:
    """The conversation of a row, as in the model card."""
    response = row["response"]
    assert isinstance(response, list)
    answer = "".join(f"{step}{marks.placeholder}" for step in response)
    return [
        {"role": "system", "content": str(row["system"])},
        {"role": "user", "content": str(row["query"])},
        {"role": "assistant", "content": answer},
    ]


def _qwen_row(example: TrainingExample, _marks: Marks) -> Row:
    return {"system": SYSTEM, "query": example.problem, "response": list(example.steps), "labels": example.targets}


def _qwen_schema(target: TargetKind) -> pa.Schema:
    label = pa.float64() if target is TargetKind.soft else pa.int64()
    texts = [("system", pa.string()), ("query", pa.string()), ("response", pa.list_(pa.string()))]
    return pa.schema([*texts, ("labels", pa.list_(label))])


def _qwen_token_offences(row: Row, marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[FormatError]:
    labels = row["labels"]
    assert isinstance(labels, list)
    wrong = list(one_token(marks.placeholder, encoder))
    if wrong:
        yield from wrong
        return
    ids = encoder.chat(messages(row, marks))
    yield from marks_among(ids, encoder.ids(marks.placeholder)[0], len(labels), max_length)


QWEN = Format(
    targets=(TargetKind.soft, TargetKind.hard),
    row=_qwen_row,
    schema=_qwen_schema,
    offences=placeholder_in_text,
    token_offences=_qwen_token_offences,
    marks=Marks(placeholder=QWEN_PLACEHOLDER),
)
