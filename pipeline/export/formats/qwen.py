"""Rows for PRMs that are asked as Qwen2.5-Math-PRM is: a score at `<extra_0>` behind every step.

Source of the rules: the model card of Qwen/Qwen2.5-Math-PRM-7B, whose `system`, `query` and `response` these are. The card's
chat is system, user and assistant, and the assistant's text is the steps, each followed by the placeholder. Qwen has
published no training code; its paper (arXiv 2501.07301) trains with cross entropy and removes all steps behind the first bad
one.
"""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.export.example import Example
from pipeline.export.formats.base import Encoder, Format, Marks, Offence, Row
from pipeline.export.formats.checks import mark_in_text, marks_among, no_steps, one_token
from pipeline.export.settings import Target

PLACEHOLDER = "<extra_0>"
SYSTEM = "Please reason step by step, and put your final answer within \\boxed{}."


def messages(row: Row, marks: Marks) -> list[dict[str, str]]:
    """The conversation that the model card makes of a row."""
    response = row["response"]
    assert isinstance(response, list)
    answer = "".join(f"{step}{marks.placeholder}" for step in response)
    return [
        {"role": "system", "content": str(row["system"])},
        {"role": "user", "content": str(row["query"])},
        {"role": "assistant", "content": answer},
    ]


def _row(example: Example, _marks: Marks) -> Row:
    return {"system": SYSTEM, "query": example.problem, "response": example.steps, "labels": example.targets}


def _schema(target: Target) -> pa.Schema:
    label = pa.float64() if target is Target.soft else pa.int64()
    texts = [("system", pa.string()), ("query", pa.string()), ("response", pa.list_(pa.string()))]
    return pa.schema([*texts, ("labels", pa.list_(label))])


def _offences(example: Example, marks: Marks) -> Iterator[Offence]:
    yield from no_steps(example)
    yield from mark_in_text(example, marks.placeholder)


def _token_offences(row: Row, marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[Offence]:
    labels = row["labels"]
    assert isinstance(labels, list)
    wrong = list(one_token(marks.placeholder, encoder))
    if wrong:
        yield from wrong
        return
    ids = encoder.chat(messages(row, marks))
    yield from marks_among(ids, encoder.ids(marks.placeholder)[0], len(labels), max_length)


QWEN = Format(
    targets=(Target.hard, Target.soft),
    row=_row,
    schema=_schema,
    offences=_offences,
    token_offences=_token_offences,
    marks=Marks(placeholder=PLACEHOLDER),
)
