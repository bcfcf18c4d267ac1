"""Layouts of human-annotated data sets, for programs that read these: PRM800K and ProcessBench. No tokens are checked.

**PRM800K.** A step has completions, each with a rating of 1, 0, -1 or none. Source of the layout: README.md of openai/prm800k
(commit 00811d6). Its readers are TRL's `examples/datasets/prm800k.py` (commit 0ad367a), OpenR's
`preprocess/src/data_types/prm800k.py` (commit 642c6da) and `data.layout=prm800k` here. All steps are chosen, so all three read
the whole chain, including steps after an error. TRL's script reads a rating of 0 or none as a bad step, OpenR's as a good one.

No human rated these steps. OpenR requires a UUID, a time and a number; they are the nil UUID, the start of 1970 and 0.
Conversion scripts read this layout, not trainers, so nothing is tokenized.

**ProcessBench.** A chain and the index of its first bad step, for evaluation. Source of the layout: README.md of the
ProcessBench repository and `code/run_eval_prm_rlhflow.py` of QwenLM/ProcessBench (commit 1aad799): -1 means a chain without an
error. `id` is the chain's, because a problem can have several chains. `generator` is left out, because several models may have
written the chains. The whole chain is written, including steps after the error. Nothing is tokenized here; the evaluated model
does that.
"""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.export.example import StepTarget, TrainingExample
from pipeline.export.formats.base import Format, FormatError, Marks, Row, columns, no_steps
from pipeline.export.settings import TargetKind

NOBODY = "00000000-0000-0000-0000-000000000000"
NEVER = "1970-01-01T00:00:00.000000"
_RATINGS: dict[StepTarget, int | None] = {1: 1, 2: 0, 0: -1, None: None}
_COMPLETION = pa.struct([("text", pa.string()), ("rating", pa.int64()), ("flagged", pa.bool_())])
_STEP = pa.struct(
    [("completions", pa.list_(_COMPLETION)), ("human_completion", pa.null()), ("chosen_completion", pa.int64())]
)
_QUESTION = pa.struct([("problem", pa.string()), ("ground_truth_answer", pa.string())])
_LABEL = pa.struct([("steps", pa.list_(_STEP)), ("total_time", pa.int64()), ("finish_reason", pa.string())])


def _prm800k_row(example: TrainingExample, _marks: Marks) -> Row:
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


def _finish_reason(example: TrainingExample) -> str:
    if 0 in example.targets:
        return "found_error"
    return "solution" if example.outcome else "give_up"


PRM800K = Format(
    targets=(TargetKind.hard,),
    row=_prm800k_row,
    schema=columns(
        ("labeler", pa.string()),
        ("timestamp", pa.string()),
        ("generation", pa.int64()),
        ("is_quality_control_question", pa.bool_()),
        ("is_initial_screening_question", pa.bool_()),
        ("question", _QUESTION),
        ("label", _LABEL),
    ),
    ignores=True,
    neutral=True,
)


NO_ERROR = -1


def _processbench_row(example: TrainingExample, _marks: Marks) -> Row:
    return {
        "id": example.chain_id,
        "problem": example.problem,
        "steps": list(example.steps),
        "final_answer_correct": example.outcome,
        "label": example.targets.index(0) if 0 in example.targets else NO_ERROR,
    }


def _processbench_offences(example: TrainingExample, _marks: Marks) -> Iterator[FormatError]:
    yield from no_steps(example)
    targets = example.targets
    if None in targets and not (0 in targets and targets.index(0) < targets.index(None)):
        number = targets.index(None) + 1
        detail = (
            f"step {number} has no label and no step before it is bad, so the first error is unknown; set such steps with "
            "uncertain=positive or negative, or set labels with threshold=..."
        )
        yield FormatError(kind="first_error_unknown", detail=detail, fatal=True)


PROCESSBENCH = Format(
    targets=(TargetKind.hard,),
    row=_processbench_row,
    schema=columns(
        ("id", pa.string()),
        ("problem", pa.string()),
        ("steps", pa.list_(pa.string())),
        ("final_answer_correct", pa.bool_()),
        ("label", pa.int64()),
    ),
    offences=_processbench_offences,
    ignores=True,
    whole=True,
)
