"""Conversations of RLHFlow's generative PRM: a step a turn of the user, its label the answer.

Source of the rules: `math-rm/README.md`, `math-rm/llama-3.1-prm.yaml` and `math-rm/prm_evaluate.py` of
RLHFlow/RLHF-Reward-Modeling (commits 002679a and 5b2a281). The first turn is the problem, a blank and the first step.
axolotl trains on the answers alone and leaves out conversations longer than `sequence_len`.
"""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.export.example import Example
from pipeline.export.formats.base import Encoder, Format, Marks, Offence, Row, no_steps, too_long
from pipeline.export.settings import Target

MAX_LENGTH = 8192
"""`sequence_len` of llama-3.1-prm.yaml."""
_TURNS = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))


def _row(example: Example, _marks: Marks) -> Row:
    turns: list[dict[str, str]] = []
    before = f"{example.problem} "
    for step, target in zip(example.steps, example.targets, strict=True):
        turns.append({"role": "user", "content": before + step})
        turns.append({"role": "assistant", "content": "+" if target else "-"})
        before = ""
    return {"conversations": turns}


def _schema(_target: Target) -> pa.Schema:
    return pa.schema([("conversations", _TURNS)])


def _offences(example: Example, _marks: Marks) -> Iterator[Offence]:
    return no_steps(example)


def _token_offences(row: Row, _marks: Marks, encoder: Encoder, max_length: int | None) -> Iterator[Offence]:
    turns = row["conversations"]
    assert isinstance(turns, list)
    return too_long(len(encoder.chat(turns)), max_length)


RLHFLOW = Format(
    targets=(Target.hard,),
    row=_row,
    schema=_schema,
    offences=_offences,
    token_offences=_token_offences,
    max_length=MAX_LENGTH,
)
