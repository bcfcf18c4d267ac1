"""Reads, grades and counts the audited answers in the folder next to this checkout, and defines the scores to be reached."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.records import UNGRADED, Verdict
from pipeline.graders.base import Checker
from pipeline.graders.question import golds_of
from tests.conftest import SHARED_DATA

FOLDER = SHARED_DATA / "grader_dev"
# The working directory of a checker's processes. Canaries may be left there, too.
CHILDREN_WORK_IN = Path("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The minimum accuracy over all cases, and the maximum of false positives among wrong answers, in percent."""

    accuracy: float
    false_positives: float = 100.0


REQUIRED = {
    "real_outputs": Bar(accuracy=99.85, false_positives=0.03),
    "math_golds": Bar(accuracy=99.7),
    "latex_cases": Bar(accuracy=99.0),
    "adversarial": Bar(accuracy=97.0),
    "reports": Bar(accuracy=99.5),
}
REQUIRED_OF_OTHERS = {"code": Bar(accuracy=99.5), "facts": Bar(accuracy=99.5)}
"""What other checkers than that of mathematics must reach on their cases of `reports`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line. `extracts`: the prediction is a whole output. `canary`: a glob that must match no file afterwards."""

    gold: str
    prediction: str
    expected: bool
    extracts: bool
    max_seconds: float | None
    canary: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The verdict of a checker on a case, and its time in seconds. `hang`: it was killed before it returned a verdict."""

    case: Case
    verdict: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Counts over the cases of one file. Every verdict other than `correct` counts as a no."""

    cases: int
    accuracy: float
    false_positives: int
    false_positive_percent: float
    false_negatives: int
    ungraded: dict[str, int]
    late: int


def cases_of(name: str, grader: str = "math") -> list[Case]:
    """The cases for a checker in one of the files named in `REQUIRED`."""
    rows = map(json.loads, (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        Case(
            gold=golds_of(row["gold"])[0],
            prediction=row["prediction"],
            expected=row["expected"],
            extracts=row["extracts"],
            max_seconds=row.get("max_seconds"),
            canary=row.get("canary"),
        )
        for row in rows
        if row.get("grader", "math") == grader
    ]


def judge(checker: Checker, case: Case) -> Outcome:
    """The verdict of the checker on one case."""
    ask = checker.grade if case.extracts else checker.grade_answer
    began = time.perf_counter()
    verdict = ask((case.gold,), case.prediction).verdict
    return Outcome(case=case, verdict=verdict.value, seconds=time.perf_counter() - began)


def score(outcomes: Sequence[Outcome]) -> Score:
    """Count the outcomes. Raises ZeroDivisionError if there are none."""
    yes = [outcome.verdict == Verdict.CORRECT for outcome in outcomes]
    expected = [outcome.case.expected for outcome in outcomes]
    false_positives = sum(said and not wanted for said, wanted in zip(yes, expected, strict=True))
    false_negatives = sum(wanted and not said for said, wanted in zip(yes, expected, strict=True))
    wrong_answers = len(outcomes) - sum(expected)
    return Score(
        cases=len(outcomes),
        accuracy=100 * (1 - (false_positives + false_negatives) / len(outcomes)),
        false_positives=false_positives,
        false_positive_percent=100 * false_positives / max(wrong_answers, 1),
        false_negatives=false_negatives,
        ungraded=dict(Counter(outcome.verdict for outcome in outcomes if outcome.verdict in UNGRADED)),
        late=sum(outcome.seconds > (outcome.case.max_seconds or float("inf")) for outcome in outcomes),
    )


def meets(result: Score, bar: Bar) -> bool:
    """Whether accuracy and false positives are within the bar."""
    return result.accuracy >= bar.accuracy and result.false_positive_percent <= bar.false_positives


def canaries(cases: Iterable[Case], *folders: Path) -> list[Path]:
    """The files that code in the answers has created in these folders or in the working directory of a checker's processes."""
    patterns = {case.canary for case in cases if case.canary}
    return [path for folder in (*folders, CHILDREN_WORK_IN) for pattern in patterns for path in folder.glob(pattern)]
