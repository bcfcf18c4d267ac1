"""What one verdict costs on real outputs, in file order as a run would meet them, in a process that starts cold.

The checker's child is started beforehand, as it is once in a run. Collection of garbage is on, as in production. What reading
the clock costs is taken off. Started as a program: prints the times of one repetition as JSON.
"""

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import mean, median

from pipeline.graders.base import Checker
from pipeline.graders.registry import checker_for
from tests.conftest import ROOT
from tests.graders.dev_files import cases_of
from tests.settings import grader_settings

FILE = "real_outputs"
OWN_CASES = ROOT / "tests" / "graders" / "cases.jsonl"
REPETITIONS = 5
QUICK_NS = 5_000
CLOCK_READINGS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Nanoseconds per output. `repeated`: the same gold and answer came before. `by_child`: a child decided.

    `algebra`: of the suite's own cases that a child decides, since real outputs hold too few.
    """

    extraction: list[int]
    decision: list[int]
    repeated: list[bool]
    by_child: list[bool]
    algebra: list[int]
    clock: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """Decisions after extraction: shares in percent, microseconds; `slow` were a child's."""

    outputs: int
    quick_percent: float
    mean_us: float
    childless_percent: float
    childless_mean_us: float
    slow: int


def repetitions() -> list[Times]:
    """Each in a process of its own, so that no cache of one helps the next."""
    return [
        Times(
            **json.loads(
                subprocess.run(
                    [sys.executable, "-m", "tests.bench.grading_time"], cwd=ROOT, capture_output=True, check=True
                ).stdout
            )
        )
        for _ in range(REPETITIONS)
    ]


def decisions(times: Times, *, repeats: bool) -> Decisions:
    """The figures of one repetition, with or without what the cache answered."""
    kept = [number for number, repeated in enumerate(times.repeated) if repeats or not repeated]
    spent = [times.decision[number] for number in kept]
    childless = [times.decision[number] for number in kept if not times.by_child[number]]
    return Decisions(
        outputs=len(kept),
        quick_percent=100 * mean(nanoseconds <= QUICK_NS for nanoseconds in spent),
        mean_us=mean(spent) / 1e3,
        childless_percent=100 * len(childless) / len(kept),
        childless_mean_us=mean(childless) / 1e3,
        slow=len(kept) - len(childless),
    )


def measure() -> Times:
    clock = _clock()
    extraction, decision, repeated, by_child = [], [], [], []
    seen: set[tuple[str, str]] = set()
    cases = cases_of(FILE)
    with checker_for(grader_settings()) as checker:
        checker.grade_answer(("1",), "\\sin^2 x+\\cos^2 x")
        for case in cases:
            golds = (case.gold,)
            began = time.perf_counter_ns()
            answer = checker.final_answer(case.prediction)
            extracted = time.perf_counter_ns()
            grade = checker.quick_answer(golds, answer)
            if slow := grade is None:
                checker.grade_answer(golds, answer or "")
            decided = time.perf_counter_ns()
            extraction.append(max(0, extracted - began - clock))
            decision.append(max(0, decided - extracted - clock))
            repeated.append((case.gold, answer or "") in seen)
            by_child.append(slow)
            seen.add((case.gold, answer or ""))
        algebra = _slow_path(checker)
    return Times(
        extraction=extraction, decision=decision, repeated=repeated, by_child=by_child, algebra=algebra, clock=clock
    )


def _slow_path(checker: Checker) -> list[int]:
    taken = []
    for row in map(json.loads, OWN_CASES.read_text(encoding="utf-8").splitlines()):
        if row["extracts"] or checker.quick_answer((row["gold"],), row["prediction"]) is not None:
            continue
        began = time.perf_counter_ns()
        checker.grade_answer((row["gold"],), row["prediction"])
        taken.append(time.perf_counter_ns() - began)
    return taken


def _clock() -> int:
    readings = [time.perf_counter_ns() for _ in range(CLOCK_READINGS)]
    return int(median(later - earlier for earlier, later in pairwise(readings)))


if __name__ == "__main__":
    print(json.dumps(asdict(measure())))
