"""The golden set: `python -m tests.graders.golden` prints what the checker makes of it."""

import tempfile
from collections import Counter
from contextlib import chdir

from pipeline.graders.base import Checker
from pipeline.graders.registry import checker_for
from tests.graders.dev_files import Outcome, Score, judge, score
from tests.graders.golden.rows import cases_of, read
from tests.settings import grader_settings

FILES = ("answers", "outputs", "adversarial", "answers_by_hand", "outputs_by_hand", "gaps")


def judged(name: str, checker: Checker) -> list[tuple[str, Outcome]]:
    """What the checker says of each case of a file, with the case's kind."""
    return [(kind, judge(checker, case)) for kind, case in cases_of(read(name), extracts=name.startswith("outputs"))]


def figures_of(name: str, result: Score) -> str:
    """The figures of a file in a line."""
    return (
        f"{name}: {result.cases} cases, {result.accuracy:.2f} % right, {result.false_positives} false positives "
        f"({result.false_positive_percent:.2f} % of the wrong answers), {result.false_negatives} false negatives, "
        f"ungraded {result.ungraded}, late {result.late}"
    )


def is_missed(outcome: Outcome) -> bool:
    """Whether the verdict is not the expected one."""
    return (outcome.verdict == "correct") is not outcome.case.expected


def figures() -> None:
    """Print the figures of each file, the kinds with their misses, and every miss."""
    for name in FILES:
        with tempfile.TemporaryDirectory() as folder, chdir(folder), checker_for(grader_settings()) as checker:
            found = judged(name, checker)
        print(figures_of(name, score([outcome for _, outcome in found])))
        kinds = Counter(kind for kind, _ in found)
        missed = Counter(kind for kind, outcome in found if is_missed(outcome))
        print(
            "  "
            + ", ".join(
                f"{kind} {kinds[kind]}" + (f" ({missed[kind]} missed)" if missed[kind] else "") for kind in kinds
            )
        )
        for kind, outcome in found:
            if is_missed(outcome):
                case = outcome.case
                print(f"  {kind}: {case.prediction!r} for {case.gold!r} is {outcome.verdict}, expected {case.expected}")


if __name__ == "__main__":
    figures()
