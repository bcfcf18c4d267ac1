"""The `grade` command's lines: one of JSONL in, the same line with its verdict out. Pure.

    {"gold": "1/2", "prediction": "So \\\\boxed{0.5}", "id": 7}
    {"gold": "1/2", "prediction": "So \\\\boxed{0.5}", "id": 7, "verdict": "correct", "answer": "0.5", "ms": 0.03}

A line that cannot be graded gets `"verdict": null` and an `error`: its number, what is wrong, what to do. A gold that
nothing can be compared with gets the verdict `unparseable` and an `error`. The keys verdict, answer, ms and error of a line
that came in are replaced; all its other keys are kept. What is written is ASCII, with everything else escaped.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.core.records import UNGRADED, Grade, Verdict
from pipeline.data.jsonl import UnusableLineError, parse_object
from pipeline.graders.question import Question, question

OURS = ("verdict", "answer", "ms", "error")
NAMES_SHOWN = 8
NAME_CHARS = 40
GOLD_CHARS = 80
_GOLD = "give the known answer as a text, a number or a list of those, of which any counts"
_PREDICTION = "give the model's output as a text, a number, or null where there is none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A line as it was read: its other keys, and the question it asks; None, and an `error`, where it asks none."""

    number: int
    kept: Mapping[str, object]
    asked: Question | None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A line to write. `verdict` is None where the line could not be graded; `error` is empty where there is none."""

    text: bytes
    verdict: Verdict | None
    error: str


def read_case(number: int, line: bytes | None) -> Case:
    """What the line with this number asks; `line` is None where it was too long to be held."""
    try:
        fields = parse_object(line)
    except UnusableLineError as unusable:
        return Case(number=number, kept={}, asked=None, error=f"line {number}: {unusable.detail}")
    kept = {name: value for name, value in fields.items() if name not in OURS}
    wrong = _fault(fields)
    if wrong:
        return Case(number=number, kept=kept, asked=None, error=f"line {number}: {wrong}")
    asked = question(fields["gold"], fields["prediction"], extracts=fields.get("extracts", True) is True)
    error = "" if asked.golds else f"line {number}: nothing can be compared with this gold; {_GOLD}"
    return Case(number=number, kept=kept, asked=asked, error=error)


def gold_error(case: Case, golds: Sequence[str]) -> str:
    """What to say of a case whose `golds` do not parse."""
    shown = ", ".join(ascii(gold[:GOLD_CHARS]) for gold in golds)
    return f"line {case.number}: the gold {shown} is not read as an answer; mend it, or write it more plainly"


def finish_line(case: Case, grade: Grade | None = None, error: str = "") -> Result:
    """The line to write for a case. Where its other keys are not JSON (NaN, thousands of levels) they are left out."""
    error = error or case.error
    verdict = {
        "verdict": grade.verdict.value if grade else None,
        "answer": grade.answer if grade else None,
        "ms": round(grade.ms, 4) if grade else None,
    }
    try:
        text = _encoded({**case.kept, **verdict, **({"error": error} if error else {})})
    except (ValueError, RecursionError):
        left_out = "its other keys were left out: NaN, infinity and a thousand levels are not JSON"
        error = f"{error}; {left_out}" if error else f"line {case.number}: {left_out}"
        text = _encoded({**verdict, "error": error})
    return Result(text=text, verdict=grade.verdict if grade else None, error=error)


def summary(verdicts: Mapping[Verdict | None, int], seconds: float) -> str:
    """What became of all lines, in one line. None stands for lines that could not be graded."""
    counts = [
        f"{verdicts.get(verdict, 0):,} {verdict.value}"
        for verdict in Verdict
        if verdict not in UNGRADED or verdicts.get(verdict)
    ]
    unusable = [f"{verdicts[None]:,} not usable"] if verdicts.get(None) else []
    return f"{sum(verdicts.values()):,} lines in {seconds:,.1f} s: {', '.join(counts + unusable)}"


def _fault(fields: Mapping[str, object]) -> str:
    """Why a line asks nothing, and the remedy; empty where it does."""
    if fields.get("gold") is None:
        missing = "the gold is null" if "gold" in fields else f'there is no "gold" among {_names(fields)}'
        return f"{missing}; {_GOLD}"
    if "prediction" not in fields:
        return f'there is no "prediction" among {_names(fields)}; {_PREDICTION}'
    prediction = fields["prediction"]
    if isinstance(prediction, bool | list | dict):
        return f"the prediction is of type {type(prediction).__name__}; {_PREDICTION}"
    if not isinstance(fields.get("extracts", True), bool):
        return '"extracts" is neither true (the prediction is a whole output) nor false (it is a bare answer)'
    return ""


def _names(fields: Mapping[str, object]) -> str:
    shown = [ascii(name[:NAME_CHARS]) for name in list(fields)[:NAMES_SHOWN]]
    return ", ".join(shown) + (", ..." if len(fields) > NAMES_SHOWN else "") if shown else "its keys (it has none)"


def _encoded(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, allow_nan=False).encode("ascii") + b"\n"
