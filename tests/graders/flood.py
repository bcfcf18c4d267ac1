"""Grades many hostile answers with one checker, and measures what they leave behind."""

import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from pipeline.core.records import Verdict
from pipeline.graders.base import Checker
from tests.graders.dev_files import CHILDREN_WORK_IN
from tests.graders.hostile import CANARY, Hostile, gold_for

LOST = (Verdict.TIMEOUT, Verdict.CRASHED)
WHOLE_OUTPUT_ONE_IN = 4
LOOK_EVERY = 1_000
TRIES = 20
# No flood contains these, so no cache contains their verdicts.
NEEDS_ALGEBRA = (
    ("7919", "7919\\sin^2 x+7919\\cos^2 x", Verdict.CORRECT),
    ("7919", "7919\\sin^2 x+7919\\cos^2 x+10^{-20}", Verdict.INCORRECT),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The resources of this process and its children at one moment."""

    parent_mib: float
    children_mib: float
    descriptors: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """The effects of a flood. `children`: all processes seen. `stuck`: questions after the flood with a wrong verdict."""

    answers: int
    seconds: float
    verdicts: dict[str, int]
    slowest_ms: float
    slowest_kind: str
    lost: int
    children: int
    usage: list[Usage]
    stuck: int


def flood(checker: Checker, answers: Iterable[Hostile], expected: int) -> Wake:
    """Grade all answers. `expected` is their number, so that memory can be measured half-way."""
    pids = _ask_for_algebra_once(checker)
    usage = [used()]
    verdicts: Counter[str] = Counter()
    slowest, slowest_kind, lost = 0.0, "", 0
    began = time.monotonic()
    for number, hostile in enumerate(answers):
        asked = time.perf_counter()
        verdict = _grade(checker, hostile, whole=number % WHOLE_OUTPUT_ONE_IN == 0)
        seconds = time.perf_counter() - asked
        verdicts[verdict.value] += 1
        if seconds > slowest:
            slowest, slowest_kind = seconds, hostile.kind
        lost += verdict in LOST
        if verdict in LOST or number % LOOK_EVERY == 0:
            pids |= _pids()
        if number == expected // 2:
            usage.append(used())
    seconds = time.monotonic() - began
    stuck = sum(checker.grade_answer((gold,), answer).verdict is not wanted for gold, answer, wanted in NEEDS_ALGEBRA)
    return Wake(
        answers=verdicts.total(),
        seconds=seconds,
        verdicts=dict(verdicts),
        slowest_ms=slowest * 1000,
        slowest_kind=slowest_kind,
        lost=lost,
        children=len(pids | _pids()),
        usage=[*usage, used()],
        stuck=stuck,
    )


def used() -> Usage:
    """Memory, descriptors, and the files of the working directory, the temporary folder and the canaries elsewhere."""
    me = psutil.Process()
    folders = {Path.cwd(), Path(tempfile.gettempdir())}
    files = sum(1 for folder in folders for _ in folder.iterdir())
    return Usage(
        parent_mib=me.memory_info().rss / 2**20,
        children_mib=sum(child.memory_info().rss for child in me.children()) / 2**20,
        descriptors=me.num_fds(),
        files=files + sum(1 for _ in CHILDREN_WORK_IN.glob(f"{CANARY}*")),
    )


def _grade(checker: Checker, hostile: Hostile, *, whole: bool) -> Verdict:
    golds = (gold_for(hostile.answer),)
    if whole:
        return checker.grade(golds, f"So we are done: \\boxed{{{hostile.answer}}}").verdict
    return checker.grade_answer(golds, hostile.answer).verdict


def _ask_for_algebra_once(checker: Checker) -> set[int]:
    """Start the first child before any hostile answer. On a busy machine a child may be late, and is then killed."""
    for number in range(1, TRIES + 1):
        checker.grade_answer((f"{number}",), f"{number}\\sin^2 x+{number}\\cos^2 x")
        if pids := _pids():
            return pids
    raise RuntimeError(f"no child survived the first {TRIES} answers")


def _pids() -> set[int]:
    return {child.pid for child in psutil.Process().children()}
