"""The lines of the `grade` command: it reads one JSON line and writes the same line with its verdict. Pure.

    {"gold": "1/2", "prediction": "So \\\\boxed{0.5}", "id": 7}
    {"gold": "1/2", "prediction": "So \\\\boxed{0.5}", "id": 7, "verdict": "correct", "answer": "0.5", "ms": 0.03}

A line that cannot be graded gets `"verdict": null` and an `error` with its number, the fault and the remedy. A line whose gold
cannot be read gets the verdict `unparseable` and an `error`. The keys verdict, answer, ms and error of an input line are
replaced, and all other keys are kept. The output is ASCII; other characters are escaped.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.core.records import UNGRADED, Grade, Verdict
from pipeline.data.jsonl import UnusableRowError, parse_object
from pipeline.data.lost_backslashes import mended
from pipeline.graders.question import Question, question

OURS = ("verdict", "answer", "ms", "error")
NAMES_SHOWN = 8
NAME_CHARS = 40
GOLD_CHARS = 80
_GOLD = "give the known answer as a text, a number, or a list of these if any of several is correct"
_PREDICTION = "give the model's output as a text, a number, or null if there is no output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An input line. `kept` are its other keys. `asked` is None, and `error` says why, if the line cannot be graded. `mended`:
    whether backslashes that JSON took were put back."""

    number: int
    kept: Mapping[str, object]
    asked: Question | None
    error: str = ""
    mended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """An output line. `verdict` is None if the line could not be graded. `error` is empty if there is no error."""

    text: bytes
    verdict: Verdict | None
    error: str
    mended: bool = False


def read_case(number: int, line: bytes | None) -> Case:
    """Parse the line with this number. `line` is None if it was too long to be read into memory."""
    kept: dict[str, object] = {}
    try:
        fields = parse_object(line)
        kept = {name: value for name, value in fields.items() if name not in OURS}
        gold = mended(fields.get("gold"), "gold", answer=True)
        wrong = _fault(fields)
    except UnusableRowError as unusable:
        wrong = unusable.detail
    if wrong:
        return Case(number=number, kept=kept, asked=None, error=f"line {number}: {wrong}")
    extracts = fields.get("extracts", True) is True
    prediction = mended(fields["prediction"], answer=not extracts)
    asked = question(gold, prediction, extracts=extracts)
    changed = (gold, prediction) != (fields["gold"], fields["prediction"])
    error = "" if asked.golds else f"line {number}: no answer can be compared with this gold; {_GOLD}"
    return Case(number=number, kept=kept, asked=asked, error=error, mended=changed)


def gold_error(case: Case, golds: Sequence[str]) -> str:
    """The error of a case whose `golds` do not parse."""
    shown = ", ".join(ascii(gold[:GOLD_CHARS]) for gold in golds)
    return f"line {case.number}: the gold {shown} cannot be read as an answer; correct it, or write it more plainly"


def finish_line(case: Case, grade: Grade | None = None, error: str = "") -> Result:
    """The output line of a case. Its other keys are left out if JSON cannot hold them (NaN, thousands of nested levels)."""
    error = error or case.error
    verdict = {
        "verdict": grade.verdict.value if grade else None,
        "answer": grade.answer if grade else None,
        "ms": round(grade.ms, 4) if grade else None,
    }
    try:
        text = _encoded({**case.kept, **verdict, **({"error": error} if error else {})})
    except (ValueError, RecursionError):
        left_out = "its other keys were left out: JSON cannot hold NaN, infinity or a thousand nested levels"
        error = f"{error}; {left_out}" if error else f"line {case.number}: {left_out}"
        text = _encoded({**verdict, "error": error})
    return Result(text=text, verdict=grade.verdict if grade else None, error=error, mended=case.mended)


def summary(verdicts: Mapping[Verdict | None, int], seconds: float, mended: int = 0) -> str:
    """Counts of the verdicts on all lines, in one line. The key None counts the lines that could not be graded. `mended`: the
    lines in which backslashes were put back."""
    counts = [
        f"{verdicts.get(verdict, 0):,} {verdict.value}"
        for verdict in Verdict
        if verdict not in UNGRADED or verdicts.get(verdict)
    ]
    unusable = [f"{verdicts[None]:,} not usable"] if verdicts.get(None) else []
    put_back = f"; {mended:,} with LaTeX whose backslash JSON took, put back: write \\\\frac in JSON" if mended else ""
    return f"{sum(verdicts.values()):,} lines in {seconds:,.1f} s: {', '.join(counts + unusable)}{put_back}"


def _fault(fields: Mapping[str, object]) -> str:
    """Why a line cannot be graded, and the remedy. Empty if it can be graded."""
    if fields.get("gold") is None:
        missing = "the gold is null" if "gold" in fields else f'there is no "gold" among {_names(fields)}'
        return f"{missing}; {_GOLD}"
    if "prediction" not in fields:
        return f'there is no "prediction" among {_names(fields)}; {_PREDICTION}'
    prediction = fields["prediction"]
    if isinstance(prediction, bool | list | dict):
        return f"the prediction is of type {type(prediction).__name__}; {_PREDICTION}"
    if not isinstance(fields.get("extracts", True), bool):
        return '"extracts" must be true (the prediction is a whole output) or false (it is a bare answer)'
    return ""


def _names(fields: Mapping[str, object]) -> str:
    shown = [ascii(name[:NAME_CHARS]) for name in list(fields)[:NAMES_SHOWN]]
    return ", ".join(shown) + (", ..." if len(fields) > NAMES_SHOWN else "") if shown else "its keys (it has none)"


def _encoded(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, allow_nan=False).encode("ascii") + b"\n"
