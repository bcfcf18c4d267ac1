"""The checker of code problems: milliseconds a suite and a test take, and what many hostile programs leave behind."""

import json
import tempfile
import time
from pathlib import Path

import psutil

from pipeline.core.records import Verdict
from pipeline.graders.code.checker import CodeChecker
from tests.graders.forgeries import FORGERIES
from tests.settings import grader_settings

SUITES = 300
STREAMS = 100
HOSTILE_ROUNDS = 92
SQUARE = "assert square(2) == 4\nassert square(3) == 9\nassert square(-1) == 1"


def programs() -> None:
    """Print the figures; nothing is asserted about time."""
    with tempfile.TemporaryDirectory() as folder:
        default, tempfile.tempdir = tempfile.tempdir, folder
        try:
            _measure(Path(folder))
        finally:
            tempfile.tempdir = default


def _measure(folder: Path) -> None:
    began = time.perf_counter()
    checker = CodeChecker(grader_settings("code", cpu_seconds=4.0, deadline_seconds=12.0))
    print(f"code problems: checker ready after {(time.perf_counter() - began) * 1000:.0f} ms")
    with checker:
        grades = [checker.grade_answer((SQUARE,), f"def square(x):\n    return x * x  # {n}") for n in range(SUITES)]
        assert {grade.verdict for grade in grades} == {Verdict.CORRECT}
        spent = sorted(grade.ms for grade in grades)
        print(f"  suite of 3 assertions: p50 {spent[SUITES // 2]:.1f} ms, p99 {spent[SUITES * 99 // 100]:.1f} ms")
        gold = json.dumps({"inputs": ["3\n"] * STREAMS, "outputs": ["9\n"] * STREAMS})
        grade = checker.grade_answer((gold,), "x = int(input())\nprint(x * x)")
        assert grade.verdict is Verdict.CORRECT
        print(f"  standard input and output: {grade.ms / STREAMS:.1f} ms a test")
        process = checker._children[0].process
        assert process is not None
        child = psutil.Process(process.pid)
        caller = psutil.Process()
        before, caller_before, counted = child.memory_info().rss, caller.memory_info().rss, 0
        for number in range(HOSTILE_ROUNDS):
            for program in FORGERIES.values():
                counted += checker.grade_answer((SQUARE,), f"{program}\n# {number}").verdict is Verdict.CORRECT
        grown = (child.memory_info().rss - before) / 2**20
        caller_grown = (caller.memory_info().rss - caller_before) / 2**20
        left = len(child.children(recursive=True)), sum(1 for _ in (folder / next(folder.iterdir())).iterdir())
        total = HOSTILE_ROUNDS * len(FORGERIES)
        print(f"  {total} hostile programs: {counted} called right, {left[0]} processes and {left[1]} files left, "
              f"child grown by {grown:.1f} MiB, caller by {caller_grown:.1f} MiB")  # fmt: skip
    print(f"  after closing: {sum(1 for _ in folder.iterdir())} folders left")
