"""ProcessBench's layout: a chain and the index of its first bad step, for evaluation.

Source of the layout: README.md of the ProcessBench repository and `code/run_eval_prm_rlhflow.py` of QwenLM/ProcessBench
(commit 1aad799): -1 stands for a chain without an error. `id` is the chain's, since one problem can have several;
`generator` is left out, for no single model may have written the chains. The whole chain is there, also behind the error.
Nothing is tokenised: whoever scores the chains does that.
"""

from collections.abc import Iterator

import pyarrow as pa

from pipeline.export.example import Example
from pipeline.export.formats.base import Format, Marks, Offence, Row
from pipeline.export.formats.checks import no_steps, not_of_tokens
from pipeline.export.settings import Target

NO_ERROR = -1


def _row(example: Example, _marks: Marks) -> Row:
    return {
        "id": example.chain_id,
        "problem": example.problem,
        "steps": example.steps,
        "final_answer_correct": example.outcome,
        "label": example.targets.index(0) if 0 in example.targets else NO_ERROR,
    }


def _schema(_target: Target) -> pa.Schema:
    return pa.schema(
        [
            ("id", pa.string()),
            ("problem", pa.string()),
            ("steps", pa.list_(pa.string())),
            ("final_answer_correct", pa.bool_()),
            ("label", pa.int64()),
        ]
    )


def _offences(example: Example, _marks: Marks) -> Iterator[Offence]:
    yield from no_steps(example)
    targets = example.targets
    if None in targets and not (0 in targets and targets.index(0) < targets.index(None)):
        number = targets.index(None) + 1
        detail = (
            f"step {number} has no label and no step before it is bad, so its first error is not known; say what such steps "
            "are with undecided=positive or negative, or label anew with threshold=..."
        )
        yield Offence(kind="first_error_unknown", detail=detail, fatal=True)


PROCESSBENCH = Format(
    targets=(Target.hard,),
    row=_row,
    schema=_schema,
    offences=_offences,
    token_offences=not_of_tokens,
    ignores=True,
    whole=True,
)
