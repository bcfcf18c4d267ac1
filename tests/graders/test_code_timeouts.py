"""Programs that choose to be late are incorrect, and programs that a busy machine makes late are not graded."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from pipeline.config.choices import TimeoutIs
from pipeline.core.records import Grade, Verdict
from pipeline.graders.base import Checker
from pipeline.graders.code import checker as checker_module
from pipeline.graders.code.checker import PATIENCE, CodeChecker, _is_by_machine
from pipeline.graders.code.child import deprived_seconds
from pipeline.graders.code.wire import ProgramReport, ProgramTask, TaskKind
from pipeline.graders.registry import DecidedChecker, checker_for
from tests.graders.conftest import code_config, keeper_of
from tests.settings import grader_settings

pytestmark = pytest.mark.slow

Maker = Callable[..., CodeChecker]

SQUARE = "assert f(2) == 4\nassert f(3) == 9"
PRINTS = json.dumps({"inputs": [""], "outputs": ["1"]})
MANY = json.dumps({"inputs": [""] * 20, "outputs": ["1"] * 20})
CHOSEN = {
    "sleeps": (PRINTS, "import time\ntime.sleep(60)"),
    "sleeps when called": (SQUARE, "import time\ndef f(x): time.sleep(60)"),
    "stops itself": (PRINTS, "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    "waits for ever": (PRINTS, "import threading\nthreading.Lock().acquire() and threading.Event().wait()"),
    "sleeps a little in each test": (MANY, "import time\ntime.sleep(0.3)\nprint(1)"),
    "makes its tests end": ("import os\nassert f(1) == 1 and os.abort()", "def f(x): return 1"),
}
LATE = {"deadline_seconds": 1.0, "suite_seconds": 1.0}


@pytest.fixture(scope="module")
def decided(code_checker: CodeChecker) -> Iterator[Checker]:
    with checker_for(code_config(deadline_seconds=0.4, suite_seconds=0.4)) as checker:
        yield checker


@pytest.mark.parametrize("name", CHOSEN)
def test_a_program_cannot_choose_to_be_ungraded(decided: Checker, name: str) -> None:
    gold, program = CHOSEN[name]
    assert decided.quick_answer((gold,), program) is None
    assert decided.grade_answer((gold,), program).verdict is Verdict.INCORRECT
    known = decided.quick_answer((gold,), program)
    assert known is not None
    assert known.verdict is Verdict.INCORRECT


KILLED = {
    "at once": (PRINTS, "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (0, 0))\nwhile 1: pass"),
    "when called": (SQUARE, "import resource\ndef f(x):\n resource.setrlimit(resource.RLIMIT_CPU, (0, 0))\n while 1: pass"),
    "by another call": (
        PRINTS, "import os, resource\nresource.prlimit(os.getpid(), resource.RLIMIT_CPU, (0, 0))\nwhile 1: pass"
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", ["at once", *(pytest.param(name, marks=pytest.mark.nightly) for name in list(KILLED)[1:])]
)
def test_a_program_cannot_have_the_kernel_kill_it(code_checker: CodeChecker, name: str) -> None:
    gold, program = KILLED[name]
    with checker_for(code_config(cpu_seconds=1.0, deadline_seconds=60.0)) as checker:
        assert checker.grade_answer((gold,), program).verdict is Verdict.INCORRECT


def test_a_program_may_raise_the_limit_of_its_stack_and_no_other(code_checker: CodeChecker) -> None:
    deep = (
        "import resource, sys, threading\n"
        "resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))\n"
        "print(resource.getrlimit(resource.RLIMIT_STACK)[0] >> 20)\n"
        "before = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE) == before)"
    )
    gold = json.dumps({"inputs": [""], "outputs": ["64\nTrue"]})
    assert code_checker.grade_answer((gold,), deep).verdict is Verdict.CORRECT


COLLIDES = ("assert len(set(f(1))) == 0", "def f(x):\n    return [n * (2**61 - 1) for n in range(200_000)]")


@pytest.mark.parametrize(
    "spinners", [pytest.param(0, id="calm", marks=pytest.mark.nightly), pytest.param(2, id="busy")]
)
def test_hashes_that_collide_in_the_tests_are_no_excuse(
    own_checker: Maker, monkeypatch: pytest.MonkeyPatch, spinners: int
) -> None:
    """The tests compute all the time, also on a machine that is busy with other programs."""
    monkeypatch.setattr(checker_module, "PATIENCE", 30.0)
    checker, (gold, program) = own_checker(**LATE), COLLIDES
    with busy_core(checker, spinners):
        first = checker.grade_answer((gold,), program)
        assert (first.verdict, first.by_machine) == (Verdict.TIMEOUT, spinners > 0)
        assert DecidedChecker(checker).grade_answer((gold,), program).verdict is Verdict.INCORRECT


def test_it_stays_ungraded_on_demand(code_checker: CodeChecker) -> None:
    with checker_for(code_config(**LATE, timeout_is=TimeoutIs.ungraded)) as checker:
        grade = checker.grade_answer((PRINTS,), CHOSEN["sleeps"][1])
    assert (grade.verdict, grade.by_machine) == (Verdict.TIMEOUT, False)


def test_who_passes_at_the_second_try_passes() -> None:
    grades = [Grade(verdict=verdict, answer="a", ms=1.0) for verdict in (Verdict.TIMEOUT, Verdict.CORRECT)]
    checker = DecidedChecker(Canned(grades))
    assert checker.grade_answer(("g",), "a") == replace(grades[1], ms=2.0)


STREAMS, CALLS = pytest.param(PRINTS, id="streams"), pytest.param("assert f(1) == 1", id="calls")
COMPUTES = "import time\ndef f(x):\n    while time.process_time() < 0.8: pass\n    return x\nprint(f(1))"


@contextmanager
def busy_core(checker: CodeChecker, spinners: int = 6) -> Iterator[None]:
    """Confines the checker's child to one processor, on which others compute all the time."""
    keeper = keeper_of(checker).pid
    core = min(os.sched_getaffinity(keeper))
    os.sched_setaffinity(keeper, {core})
    spins = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-c", spins], start_new_session=True) for _ in range(spinners)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@pytest.mark.nightly
@pytest.mark.parametrize("gold", [STREAMS, CALLS])
def test_a_program_that_is_late_on_a_busy_machine_gets_its_time(
    own_checker: Maker, monkeypatch: pytest.MonkeyPatch, gold: str
) -> None:
    monkeypatch.setattr(checker_module, "PATIENCE", 30.0)
    checker = own_checker(deadline_seconds=2.0)
    with busy_core(checker):
        assert checker.grade_answer((gold,), COMPUTES).verdict is Verdict.TIMEOUT
        assert DecidedChecker(checker).grade_answer((gold,), COMPUTES).verdict is Verdict.CORRECT


@pytest.mark.nightly
@pytest.mark.parametrize("gold", [STREAMS, CALLS])
def test_a_program_to_which_a_busy_machine_leaves_too_little_is_not_graded(
    own_checker: Maker, monkeypatch: pytest.MonkeyPatch, gold: str
) -> None:
    monkeypatch.setattr(checker_module, "PATIENCE", 1.5)
    checker = own_checker(deadline_seconds=2.0)
    with busy_core(checker):
        grade = DecidedChecker(checker).grade_answer((gold,), COMPUTES)
        assert (grade.verdict, grade.by_machine) == (Verdict.TIMEOUT, True)
        sleeps = DecidedChecker(checker).grade_answer((gold,), CHOSEN["sleeps"][1])
        assert sleeps.verdict is Verdict.INCORRECT


SPINS_TOGETHER = """
import threading, time
threading.stack_size(2**16)
def spin():
    while time.monotonic() % 0.1 > 0.002: time.sleep(0.001)
    end = time.monotonic() + 0.0005
    while time.monotonic() < end: pass
def work():
    while True: spin()
for _ in range(60): threading.Thread(target=work, daemon=True).start()
time.sleep(60)
"""


def test_threads_that_take_the_processor_from_each_other_are_no_excuse(own_checker: Maker) -> None:
    checker = own_checker(deadline_seconds=2.0, cpu_seconds=2.0)
    assert DecidedChecker(checker).grade_answer((PRINTS,), SPINS_TOGETHER).verdict is Verdict.INCORRECT


@pytest.mark.parametrize(
    ("processes", "deprived"),
    [
        ([([(1.0, 3.0)], 1.0)], 3.0),
        ([([(0.1, 0.0)], 0.1)], 0.0),
        ([([(0.1, 2.0), (2.0, 0.0)], 2.1)], 0.0),
        ([([(0.1, 2.0)], 2.1)], 0.0),
        ([([(1.0, 3.0)], 1.0), ([(0.5, 2.0)], 0.5)], 2.5 + 1.0),
        ([([(0.5, 8.0)], 0.5), ([(8.0, 0.0)], 8.0)], 0.0),
        ([([], 0.0)], 0.0),
    ],
    ids=["others", "sleeps", "own thread", "ended thread", "both kept waiting", "tests compute", "nothing"],
)
def test_what_threads_take_from_each_other_is_not_taken_by_others(
    processes: Sequence[tuple[list[tuple[float, float]], float]], deprived: float
) -> None:
    assert deprived_seconds(processes) == pytest.approx(deprived)


LATE_RUN = ProgramReport(
    began=True, status=None, exhausted=False, late=True, unseen=False, last_status=None,
    wall_seconds=40.0, deprived_seconds=31.0,
)  # fmt: skip
FAST = replace(LATE_RUN, late=False, wall_seconds=1.0, deprived_seconds=0.0)
CRASH = replace(LATE_RUN, late=False, last_status=-6)


@pytest.mark.parametrize(
    ("verdict", "runs", "by_machine"),
    [
        (Verdict.TIMEOUT, [LATE_RUN], True),
        (Verdict.TIMEOUT, [FAST] * 99 + [LATE_RUN], True),
        (Verdict.TIMEOUT, [replace(LATE_RUN, deprived_seconds=30.0)], False),
        (Verdict.TIMEOUT, [replace(LATE_RUN, wall_seconds=10.1, deprived_seconds=2.0)], False),
        (Verdict.TIMEOUT, [replace(LATE_RUN, deprived_seconds=None)], True),
        (Verdict.TIMEOUT, [FAST] * 9, False),
        (Verdict.TIMEOUT, [replace(FAST, deprived_seconds=0.6)] * 9, True),
        (Verdict.TIMEOUT, [replace(FAST, deprived_seconds=0.6)] * 26, False),
        (Verdict.CRASHED, [CRASH], False),
        (Verdict.CRASHED, [replace(CRASH, last_status=-9)], True),
        (Verdict.CRASHED, [replace(CRASH, status=-9)], True),
        (Verdict.CRASHED, [replace(CRASH, began=False)], True),
        (Verdict.CRASHED, [replace(CRASH, unseen=True)], True),
        (Verdict.CRASHED, [None], True),
        (Verdict.INCORRECT, [LATE_RUN], False),
    ],
)
def test_when_the_machine_may_be_the_cause(
    verdict: Verdict, runs: list[ProgramReport | None], by_machine: bool
) -> None:
    task = ProgramTask(kind=TaskKind.SCRIPT, cpu_seconds=4.0, wall_seconds=10.0, memory_bytes=2**29, patience=PATIENCE)
    assert _is_by_machine(verdict, [(task, report) for report in runs], 10.0) is by_machine


class Canned(Checker):
    """A checker that gives these grades one after the other."""

    def __init__(self, grades: list[Grade]) -> None:
        self.grades = list(grades)

    def final_answer(self, text: str, *, complete: bool = True) -> str | None:
        return text

    def quick_answer(self, golds: tuple[str, ...], answer: str | None) -> Grade | None:
        return None

    def grade_answer(self, golds: tuple[str, ...], answer: str) -> Grade:
        return self.grades.pop(0)

    def parses(self, gold: str) -> bool:
        return True

    def close(self) -> None:
        self.grades.clear()


@pytest.mark.parametrize("verdict", [Verdict.TIMEOUT, Verdict.CRASHED])
@pytest.mark.parametrize("by_machine", [True, False])
def test_what_happens_twice_is_wrong_unless_the_machine_may_be_the_cause(verdict: Verdict, by_machine: bool) -> None:
    lost = Grade(verdict=verdict, answer="a", ms=1.0, by_machine=by_machine)
    inner = Canned([lost] * 4)
    checker = DecidedChecker(inner)
    wanted = verdict if by_machine else Verdict.INCORRECT
    assert [checker.grade(("g",), "a").verdict for _ in range(2)] == [wanted] * 2
    assert len(inner.grades) == (0 if by_machine else 2)
    assert (checker.quick(("g",), "a") is None) is by_machine
    assert checker.quick(("h",), "a") is None


def test_the_default_depends_on_what_can_choose() -> None:
    assert grader_settings("code").timeout_is is TimeoutIs.wrong
    assert grader_settings("math").timeout_is is TimeoutIs.ungraded
    with checker_for(grader_settings("math")) as checker:
        assert not isinstance(checker, DecidedChecker)
    with checker_for(grader_settings("math", timeout_is=TimeoutIs.wrong)) as checker:
        assert isinstance(checker, DecidedChecker)
