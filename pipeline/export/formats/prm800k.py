"""PRM800K's layout: a step has completions, and each of them a rating of 1, 0, -1 or none.

Source of the layout: README.md of openai/prm800k (commit 00811d6). Its readers are TRL's `examples/datasets/prm800k.py`
(commit 0ad367a), OpenR's `preprocess/src/data_types/prm800k.py` (commit 642c6da) and `data.layout=prm800k` here. All steps
are chosen, so each of them reads the chain whole, also behind an error. TRL's script takes a rating of 0 or none for a bad
step, OpenR's for a good one.

No person rated these steps: where OpenR asks for a UUID, a time and a number all the same, they are the nil UUID, the start
of 1970 and 0. There are no tokens to look at, for conversion scripts read this, not trainers.
"""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.export.example import Example, StepTarget
from pipeline.export.formats.base import Format, Marks, Offence, Row
from pipeline.export.formats.checks import no_steps, not_of_tokens
from pipeline.export.settings import Target

NOBODY = "00000000-0000-0000-0000-000000000000"
NEVER = "1970-01-01T00:00:00.000000"
_RATINGS: dict[StepTarget, int | None] = {1: 1, 2: 0, 0: -1, None: None}
_COMPLETION = pa.struct([("text", pa.string()), ("rating", pa.int64()), ("flagged", pa.bool_())])
_STEP = pa.struct(
    [("completions", pa.list_(_COMPLETION)), ("human_completion", pa.null()), ("chosen_completion", pa.int64())]
)
_QUESTION = pa.struct([("problem", pa.string()), ("ground_truth_answer", pa.string())])
_LABEL = pa.struct([("steps", pa.list_(_STEP)), ("total_time", pa.int64()), ("finish_reason", pa.string())])


def _row(example: Example, _marks: Marks) -> Row:
    return {
        "labeler": NOBODY,
        "timestamp": NEVER,
        "generation": None,
        "is_quality_control_question": False,
        "is_initial_screening_question": False,
        "question": {
            "problem": example.problem,
            "ground_truth_answer": example.gold_answer,
        },
        "label": {
            "steps": [
                {
                    "completions": [{"text": step, "rating": _RATINGS[target], "flagged": None}],
                    "human_completion": None,
                    "chosen_completion": 0,
                }
                for step, target in zip(example.steps, example.targets, strict=True)
            ],
            "total_time": 0,
            "finish_reason": _finish_reason(example),
        },
    }


def _finish_reason(example: Example) -> str:
    if 0 in example.targets:
        return "found_error"
    return "solution" if example.outcome else "give_up"


def _schema(_target: Target) -> pa.Schema:
    columns: list[tuple[str, pa.DataType]] = [
        ("labeler", pa.string()),
        ("timestamp", pa.string()),
        ("generation", pa.int64()),
        ("is_quality_control_question", pa.bool_()),
        ("is_initial_screening_question", pa.bool_()),
        ("question", _QUESTION),
        ("label", _LABEL),
    ]
    return pa.schema(columns)


def _offences(example: Example, _marks: Marks) -> Iterator[Offence]:
    return no_steps(example)


PRM800K = Format(
    targets=(Target.hard,),
    row=_row,
    schema=_schema,
    offences=_offences,
    token_offences=not_of_tokens,
    ignores=True,
    neutral=True,
)
