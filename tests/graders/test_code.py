"""Every verdict on programs, in every format of suites, and when processes are lost."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from pipeline.config.choices import Sandbox
from pipeline.core.errors import StepvalueError
from pipeline.core.records import Verdict
from pipeline.graders.code import child_process
from pipeline.graders.code.checker import CodeChecker
from pipeline.graders.code.program import MAX_PROGRAM_CHARS
from pipeline.graders.math.pool import MathChecker
from pipeline.graders.question import in_time, question
from pipeline.graders.registry import DecidedChecker, checker_for
from tests.graders.conftest import CPU_SECONDS, code_config, keeper_of
from tests.settings import grader_settings

pytestmark = pytest.mark.slow

SQUARE = "assert f(2) == 4\nassert f(3) == 9"
SUM = json.dumps({"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7"]})
ADDS = "a, b = map(int, input().split())\nprint(a + b)"
HUMANEVAL = json.dumps(
    {
        "prompt": 'import math\ndef helper(x):\n    return x * x\n\ndef area(r: float) -> float:\n    """Of a circle."""\n',
        "test": "META = {}\ndef check(candidate):\n    assert abs(candidate(1) - math.pi) < 1e-6\n    assert helper(2) == 4\n",
        "entry_point": "area",
    }
)
LEETCODE = json.dumps({"fn_name": "add", "inputs": [[[1, 2], 3]], "outputs": [[4, 5]]})

PROGRAMS = Path(__file__).with_name("programs.jsonl")
Maker = Callable[..., CodeChecker]


@pytest.mark.parametrize(
    ("gold", "program", "verdict"),
    [
        (SQUARE, "def f(x):\n    return x * x", Verdict.CORRECT),
        (SQUARE, "def f(x):\n    return x * x\nimport sys\nsys.exit(0)", Verdict.INCORRECT),
        (SQUARE, "def f(x):\n    return x * x\nif __name__ == '__main__':\n    input()", Verdict.CORRECT),
        (SQUARE, "x = ' ' * 10**10", Verdict.INCORRECT),
        ("assert list(f(3)) == [0, 1, 2]", "def f(n):\n    yield from range(n)", Verdict.CORRECT),
        ("x = [2, 1]\nf(x)\nassert x == [1, 2]", "def f(x):\n    x.sort()", Verdict.CORRECT),
        ("assert f(lambda v: v + 1, 1) == 2", "def f(g, x):\n    return g(x)", Verdict.CORRECT),
        (
            "s = Stack()\ns.push(3)\nassert s.pop() == 3 and len(s) == 0",
            "class Stack:\n    def __init__(self): self.a = []\n    def push(self, x): self.a.append(x)\n"
            "    def pop(self): return self.a.pop()\n    def __len__(self): return len(self.a)",
            Verdict.CORRECT,
        ),
        (
            "try:\n    f(-1)\n    assert False\nexcept ValueError:\n    pass",
            "def f(x):\n    if x < 0: raise ValueError(x)",
            Verdict.CORRECT,
        ),
        ("assert sum(10, 15) == 6", "def sum(a, b):\n    return 6", Verdict.CORRECT),
        ("assert math.isclose(f(), 0.3)", "def f(): return 0.1 + 0.2", Verdict.CORRECT),
        ('["assert f(1) == 1"]', "def f(x): return x", Verdict.CORRECT),
        (HUMANEVAL, "def area(r):\n    return math.pi * r * r", Verdict.CORRECT),
        (HUMANEVAL, "def area(r):\n    return 3 * r * r", Verdict.INCORRECT),
        (HUMANEVAL, "pass", Verdict.INCORRECT),
        (SUM, ADDS, Verdict.CORRECT),
        (SUM, f"{ADDS}\nraise SystemExit(1)", Verdict.INCORRECT),
        (SUM, f"{ADDS}\nraise SystemExit", Verdict.CORRECT),
        (SUM, f"if __name__ == '__main__':\n    {ADDS.replace(chr(10), chr(10) + '    ')}", Verdict.CORRECT),
        (SUM, "import sys\nprint(sum(map(int, sys.stdin.read().split())), file=open(1, 'w'))", Verdict.CORRECT),
        (SUM, "import os\nos.write(1, b'%d' % sum(map(int, os.read(0, 99).split())))", Verdict.CORRECT),
        (SUM, "def run():\n    print(eval(input().replace(' ', '+')))\nimport threading\n"
              "threading.stack_size(2**26)\nthreading.Thread(target=run).start()", Verdict.CORRECT),
        (SUM, f"import atexit, io, os, sys\nsys.stdout = io.StringIO()\n"
              f"atexit.register(lambda: os.write(1, sys.stdout.getvalue().encode()))\n{ADDS}", Verdict.CORRECT),
        (SUM, "out = open(1, 'w', closefd=False)\nout.write(str(sum(map(int, input().split()))))", Verdict.CORRECT),
        (SUM, "import asyncio\nasync def run():\n    await asyncio.sleep(0)\n    print(sum(map(int, input().split())))\n"
              "asyncio.run(run())", Verdict.CORRECT),
        (SUM, "with open('a', 'w') as f: f.write(input())\n"
              "print(sum(map(int, open('a').read().split())))", Verdict.CORRECT),
        (SUM, "while True: print('x' * 1000)", Verdict.INCORRECT),
        (LEETCODE, "class Solution:\n    def add(self, a: List[int], b: int) -> List[int]:\n"
                   "        return [x + b for x in a]", Verdict.CORRECT),
        (LEETCODE, "def add(a, b):\n    return tuple(x + b for x in a)", Verdict.CORRECT),
        (LEETCODE, "class Solution:\n    def add(self, a, b): return a", Verdict.INCORRECT),
        ("assert (", "x = 1", Verdict.UNPARSEABLE),
        ("x = 1", "x = 1", Verdict.UNPARSEABLE),
        ("{}", "x = 1", Verdict.UNPARSEABLE),
        (SQUARE, "#" * (MAX_PROGRAM_CHARS + 1), Verdict.OVER_LIMIT),
        (SQUARE, "x" * 1_000_000, Verdict.OVER_LIMIT),
        (SQUARE, "\0", Verdict.INCORRECT),
        (SQUARE, "x = '\ud800'", Verdict.INCORRECT),
        (SUM, "x = '\ud800'", Verdict.INCORRECT),
        (SUM, f"# \u202e \u4f60\n{ADDS}", Verdict.CORRECT),
        (SQUARE, "(" * 50_000, Verdict.INCORRECT),
        (SQUARE, "-" * 90_000 + "1", Verdict.INCORRECT),
        (SQUARE, " \n", Verdict.NO_ANSWER),
    ],
)  # fmt: skip
def test_verdicts(code_checker: CodeChecker, gold: str, program: str, verdict: Verdict) -> None:
    grade = code_checker.grade_answer((gold,), program)
    assert grade.verdict is verdict
    assert program.startswith(grade.answer) or verdict is Verdict.NO_ANSWER


def test_programs_as_they_are_written(code_checker: CodeChecker) -> None:
    rows = [json.loads(line) for line in PROGRAMS.read_text().splitlines()]
    for row in rows:
        verdict = in_time(code_checker, question(row["gold"], row["output"], extracts=True)).verdict
        assert (verdict is Verdict.CORRECT) is row["right"], row
        assert verdict in (Verdict.CORRECT, Verdict.INCORRECT, Verdict.NO_ANSWER), row
        assert not os.listdir(str(code_checker._children[0]._folder))


def test_whole_outputs(code_checker: CodeChecker) -> None:
    output = "Squares:\n```python\ndef f(x):\n    return x ** 2\n```\nDone."
    assert code_checker.final_answer(output) == "def f(x):\n    return x ** 2"
    assert code_checker.quick((SQUARE,), output) is None
    assert code_checker.grade((SQUARE,), output).verdict is Verdict.CORRECT
    known = code_checker.quick((SQUARE,), output)
    assert known is not None
    assert known.verdict is Verdict.CORRECT
    assert code_checker.grade((SQUARE,), "I do not know.").verdict is Verdict.NO_ANSWER
    assert code_checker.grade((SQUARE,), output[:40], complete=False).verdict is Verdict.NO_ANSWER


def test_any_of_several_golds_counts(code_checker: CodeChecker) -> None:
    program = "def f(x):\n    return x + x"
    assert code_checker.grade_answer((SQUARE, "assert f(2) == 4"), program).verdict is Verdict.CORRECT
    assert code_checker.grade_answer((SQUARE, "assert f(2) == 5"), program).verdict is Verdict.INCORRECT
    assert code_checker.grade_answer((SQUARE, "assert ("), program).verdict is Verdict.UNPARSEABLE


def test_golds_are_checked_and_not_run(code_checker: CodeChecker, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    good = [SQUARE, SUM, HUMANEVAL, LEETCODE, '["assert f(1)"]', f"open({str(trap)!r}, 'w')\nassert f(1)"]
    bad = ["", "x + ", "f(1)", "{}", "[]", "assert '\0'", "(" * 100_000, '{"inputs": [], "outputs": []}']
    assert [gold for gold in good if not code_checker.parses(gold)] == []
    assert [gold for gold in bad if code_checker.parses(gold)] == []
    assert not trap.exists()


def test_sleeping_is_a_timeout_that_is_not_remembered(own_checker: Maker) -> None:
    checker = own_checker(deadline_seconds=0.4)
    for gold in (SQUARE, SUM):
        for _ in range(2):
            assert checker.grade_answer((gold,), "import time\ntime.sleep(60)").verdict is Verdict.TIMEOUT
        assert checker.quick_answer((gold,), "import time\ntime.sleep(60)") is None


def test_a_suite_that_takes_too_long_as_a_whole_is_a_timeout(own_checker: Maker) -> None:
    checker = own_checker(suite_seconds=0.5)
    gold = json.dumps({"inputs": [""] * 50, "outputs": ["1"] * 50})
    assert checker.grade_answer((gold,), "import time\ntime.sleep(0.2)\nprint(1)").verdict is Verdict.TIMEOUT


def test_processor_time_counts_over_all_calls_of_a_suite(code_checker: CodeChecker) -> None:
    burns = "import time\ndef f(x):\n    while time.process_time() < x: pass\n    return True"
    enough, more = CPU_SECONDS * 0.3, CPU_SECONDS * 2
    assert code_checker.grade_answer((f"assert f({enough})",), burns).verdict is Verdict.CORRECT
    assert code_checker.grade_answer((f"assert f({enough})\nassert f({more})",), burns).verdict is Verdict.INCORRECT


def program_of(checker: CodeChecker) -> psutil.Process:
    """The first process that the checker's child has forked for a run."""
    for _ in range(500):
        running = keeper_of(checker).children()
        if running:
            return running[0]
        time.sleep(0.01)
    raise AssertionError("no program runs")


@pytest.mark.parametrize("victim", [program_of, keeper_of])
@pytest.mark.parametrize("gold", [SQUARE, SUM])
def test_killed_from_elsewhere_is_a_crash_that_is_not_remembered(
    own_checker: Maker, temporary: Path, gold: str, victim: Callable[[CodeChecker], psutil.Process]
) -> None:
    checker = own_checker(deadline_seconds=30.0)
    program = "import time\ntime.sleep(25)\ndef f(x): return x * x"
    verdicts: list[Verdict] = []
    thread = threading.Thread(target=lambda: verdicts.append(checker.grade_answer((gold,), program).verdict))
    thread.start()
    program_process = program_of(checker)
    time.sleep(0.2)
    victim(checker).kill()
    thread.join()
    assert verdicts == [Verdict.CRASHED]
    program_process.wait(10)
    assert checker.quick_answer((gold,), program) is None
    assert checker.grade_answer((SQUARE,), "def f(x): return x * x").verdict is Verdict.CORRECT
    assert len(list(temporary.iterdir())) == 1


def test_any_thread_may_ask(own_checker: Maker) -> None:
    checker = own_checker(processes=2, deadline_seconds=30.0)
    verdicts: list[Verdict] = []

    def work(number: int) -> None:
        verdicts.append(checker.grade_answer((f"assert f() == {number}",), f"def f(): return {number}").verdict)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == [Verdict.CORRECT] * 8


def test_closing_ends_processes_and_removes_folders(own_checker: Maker, temporary: Path) -> None:
    checker = own_checker()
    keeper = keeper_of(checker)
    assert len(list(temporary.iterdir())) == 1
    assert checker.grade_answer((SQUARE,), "def f(x): return x * x").verdict is Verdict.CORRECT
    checker.close()
    assert not keeper.is_running()
    assert list(temporary.iterdir()) == []
    assert checker.grade_answer((SQUARE,), "def f(x): return x * x").verdict is Verdict.CORRECT
    with pytest.raises(StepvalueError, match="closed"):
        checker.grade_answer((SQUARE,), "def f(x): return 0")


def test_everything_ends_when_the_parent_dies(code_checker: CodeChecker, tmp_path: Path) -> None:
    code = (
        "import os, tempfile, threading, time, psutil\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "from pipeline.graders.settings import CodeConfig\n"
        "from pipeline.graders.code.checker import CodeChecker\n"
        "c = CodeChecker(CodeConfig(deadline_seconds=60))\n"
        "program = 'import time\\ntime.sleep(60)'\n"
        "threading.Thread(target=c.grade_answer, args=(('assert f()',), program), daemon=True).start()\n"
        "while len(found := psutil.Process().children(recursive=True)) < 3: time.sleep(0.01)\n"
        "print(*(process.pid for process in found), flush=True)\nos._exit(0)"
    )
    parent = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    pids = list(map(int, parent.stdout.split()))
    assert len(pids) == 3
    for _ in range(500):
        if not any(map(running, pids)) and not any(tmp_path.iterdir()):
            return
        time.sleep(0.02)
    raise AssertionError([pids, list(tmp_path.iterdir())])


def running(pid: int) -> bool:
    return psutil.pid_exists(pid) and bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)


def test_a_machine_that_confines_too_little_is_refused(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(child_process._REQUIRED, Sandbox.standard, ("system_calls", "what no kernel has"))
    monkeypatch.setitem(
        child_process._MISSING, "what no kernel has", "there is no such thing, set grader.sandbox=limits"
    )
    with pytest.raises(StepvalueError, match=r"cannot be run safely here: .*grader\.sandbox=limits"):
        checker_for(code_config(sandbox=Sandbox.standard))
    assert list(temporary.iterdir()) == []
    with checker_for(code_config(sandbox=Sandbox.limits)) as checker:
        assert checker.grade_answer((SQUARE,), "def f(x): return x * x").verdict is Verdict.CORRECT


def test_a_child_that_does_not_start_is_reported(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "PACKAGE_ROOT", str(temporary))
    with pytest.raises(StepvalueError, match=r"does not start: .*No module named"):
        checker_for(code_config())
    assert list(temporary.iterdir()) == []


def test_the_settings_choose_the_checker(code_checker: CodeChecker) -> None:
    with checker_for(code_config(kind="code")) as checker:
        assert isinstance(checker, DecidedChecker)
        assert isinstance(checker.checker, CodeChecker)
    with checker_for(grader_settings("math")) as checker:
        assert isinstance(checker, MathChecker)
