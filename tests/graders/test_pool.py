import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pipeline.core.errors import StepvalueError
from pipeline.core.records import Verdict
from pipeline.graders.math.pool import MathChecker
from tests.graders import light_child
from tests.settings import grader_settings

pytestmark = pytest.mark.slow

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases.jsonl").read_text().splitlines()]
DEADLINE = 1.0


def identity(number: int) -> tuple[str, str]:
    """A gold and a correct answer that only a child can decide."""
    return str(number), f"{number}\\sin^2 x + {number}\\cos^2 x"


NEEDS_ALGEBRA = identity(1)
# Under every limit, and beyond what sympy does in a second.
STALLS = "\\sum_{i=1}^{\\infty} \\frac{\\sin i}{i^5}"
HOSTILE = [
    "9^{9^{9^9}}",
    "10^9!",
    "(10^9)!",
    "5^(5^(5^(5^5)))",
    "1E+99999999",
    "2^{9999}-2^{9998}",
    "__import__('os').system('touch pwned')",
    "(lambda: open('pwned','w'))()",
    "{" * 10_000 + "5" + "}" * 10_000,
    "(" * 20 + "x" + ")" * 20,
    "\\frac{1}{" * 18 + "x" + "}" * 18,
    "\\sqrt" * 100,
    "x" * 1_000_000,
    "\0",
    "\ud800",
    "x+\ud800",
    "\u202e5",
    '"}\n{"gold": "5", "answer": "5"}',
    "x+1\n{}",
    "\\input{/etc/passwd}",
]


def child_of(checker: MathChecker) -> "subprocess.Popen[bytes]":
    assert checker.grade_answer((NEEDS_ALGEBRA[0],), NEEDS_ALGEBRA[1]).verdict is Verdict.CORRECT
    process = checker._children[0].process
    assert process is not None
    return process


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']}: {case['gold']} ~ {case['prediction'][:40]}")
def test_cases(checker: MathChecker, case: dict[str, str]) -> None:
    grade = checker.grade if case["extracts"] else checker.grade_answer
    assert grade((case["gold"],), case["prediction"]).verdict == case["verdict"]


def test_golds_of_the_cases_are_accepted_and_equal_themselves(checker: MathChecker) -> None:
    golds = {case["gold"] for case in CASES}
    assert [gold for gold in golds if not checker.parses(gold)] == []
    assert [gold for gold in golds if checker.grade_answer((gold,), gold).verdict is not Verdict.CORRECT] == []


SENTENCES = [
    "We compute. So $\\boxed{{{}}}$.", "The answer is ${}$.", "Thus we get\n\\[\n{}\n\\]", "Hence the value is ${}$.",
    "#### {}", "**Final Answer**: ${}$", "Final Answer: The final answer is ${}$. I hope it is correct.",
    "The final answer is \\({}\\).", "Answer: {}", "<think>Maybe 7.</think>\nIt is $\\boxed{{{}}}$",
    "<answer>{}</answer>",
]  # fmt: skip
REWRITINGS = [
    ("\\frac", "\\dfrac"),
    ("\\frac", "\\tfrac"),
    (",", ", "),
    ("\\pi", "π"),
    ("-", "−"),
    ("\\infty", "∞"),
    ("\\cup", "∪"),
]
FORMULAS = sorted({case["gold"] for case in CASES if "\\" in case["gold"] and "\\text" not in case["gold"]})


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_gold_equals_itself_however_it_is_stated(checker: MathChecker, sentence: str) -> None:
    golds = [gold for gold in FORMULAS if not gold.startswith(("\\$", "\\begin"))]
    assert [
        gold for gold in golds if checker.grade((gold,), sentence.format(gold)).verdict is not Verdict.CORRECT
    ] == []


@pytest.mark.parametrize(("old", "new"), REWRITINGS)
def test_a_gold_equals_itself_however_it_is_spelled(checker: MathChecker, old: str, new: str) -> None:
    spelled = [(gold, gold.replace(old, new)) for gold in FORMULAS if old in gold]
    assert spelled
    assert [pair for pair in spelled if checker.grade_answer((pair[0],), pair[1]).verdict is not Verdict.CORRECT] == []


def test_whole_outputs(checker: MathChecker) -> None:
    grade = checker.grade(("72",), "She sold 48 + 24 clips.\n#### 72")
    assert (grade.verdict, grade.answer) == (Verdict.CORRECT, "72")
    assert checker.grade(("72",), "I do not know.").verdict is Verdict.NO_ANSWER
    assert checker.grade_answer(("72",), "\0\u200b").verdict is Verdict.NO_ANSWER
    assert checker.quick((identity(4)[0],), f"\\boxed{{{identity(4)[1]}}}") is None
    assert checker.grade((identity(4)[0],), f"\\boxed{{{identity(4)[1]}}}").verdict is Verdict.CORRECT
    known = checker.quick((identity(4)[0],), f"\\boxed{{{identity(4)[1]}}}")
    assert known is not None
    assert known.verdict is Verdict.CORRECT


def test_any_of_several_golds_counts(checker: MathChecker) -> None:
    assert checker.grade_answer(("5", "x^2-1"), "(x-1)(x+1)").verdict is Verdict.CORRECT
    assert checker.grade_answer(("5", "6"), "6").verdict is Verdict.CORRECT
    assert checker.grade_answer(("5", "6"), "7").verdict is Verdict.INCORRECT
    assert checker.grade_answer(("5", "x+"), "x").verdict is Verdict.UNPARSEABLE


def test_golds_are_checked(checker: MathChecker) -> None:
    good = ["5", "\\frac12", "no solution", "B", "(1,2)", "x^2-1", "[3,\\infty)", "12\\text{ and }13", "90^\\circ"]
    good += ["1" * 1000, "1^{9^{9^9}}", "1:\\sqrt{2}", "boys : girls = 3 : 4", "f(x) = 2x", "2^{3}5^{2}", "a) 3 b) 5"]
    bad = ["", " ", "x+", "\\frac{1}{", "9^{9^{9^9}}", "1" * 30_000]
    assert [gold for gold in good if not checker.parses(gold)] == []
    assert [gold for gold in bad if checker.parses(gold)] == []


def test_hostile_answers_get_a_verdict_and_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a file of the working directory imported, and an answer that stalls costs the next one nothing."""
    (tmp_path / "sympy.py").write_text("open('pwned', 'w')")
    monkeypatch.chdir(tmp_path)
    with MathChecker(grader_settings(deadline_seconds=DEADLINE)) as checker:
        process = child_of(checker)
        for answer in HOSTILE:
            for gold in ("7", "x^2-1"):
                assert checker.grade_answer((gold,), answer).verdict not in (Verdict.CORRECT, Verdict.CRASHED)
        assert checker.grade_answer(("5",), STALLS).verdict is Verdict.TIMEOUT
        assert process.poll() is not None
        known = checker.quick_answer(("5",), STALLS)
        assert known is not None
        assert known.verdict is Verdict.TIMEOUT
        assert checker.grade_answer((identity(2)[0],), identity(2)[1]).verdict is Verdict.CORRECT
    assert [path.name for path in tmp_path.iterdir()] == ["sympy.py"]


def test_a_stopped_child_is_a_timeout(light: None) -> None:
    with MathChecker(grader_settings(deadline_seconds=DEADLINE)) as checker:
        os.kill(child_of(checker).pid, signal.SIGSTOP)
        assert checker.grade_answer((identity(2)[0],), identity(2)[1]).verdict is Verdict.TIMEOUT


def test_an_answer_whose_child_is_killed_is_graded_by_another(light: None) -> None:
    """The kernel kills processes where memory is short, and that is no fault of the answer."""
    with MathChecker(grader_settings(deadline_seconds=DEADLINE)) as checker:
        kill_while_it_grades(child_of(checker))
        assert checker.grade_answer((identity(4)[0],), identity(4)[1]).verdict is Verdict.CORRECT


def test_an_answer_of_which_two_children_die_is_a_crash(light: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with MathChecker(grader_settings(deadline_seconds=DEADLINE)) as checker:
        child = checker._children[0]
        start = child.start

        def start_and_kill() -> "subprocess.Popen[bytes]":
            process = start()
            kill_while_it_grades(process)
            return process

        kill_while_it_grades(child_of(checker))
        with monkeypatch.context() as patch:
            patch.setattr(child, "start", start_and_kill)
            assert checker.grade_answer((identity(4)[0],), identity(4)[1]).verdict is Verdict.CRASHED
        assert checker.grade_answer((identity(4)[0],), identity(4)[1]).verdict is Verdict.CORRECT


def kill_while_it_grades(process: "subprocess.Popen[bytes]") -> None:
    os.kill(process.pid, signal.SIGSTOP)
    threading.Timer(0.2, process.kill).start()  # which may have ended by then


def test_a_child_without_memory_costs_one_more_try(light: None) -> None:
    with MathChecker(grader_settings(deadline_seconds=20.0)) as checker:
        process = child_of(checker)
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[0])
        little = pages * resource.getpagesize() + (4 << 20)
        resource.prlimit(
            process.pid, resource.RLIMIT_AS, (little, resource.prlimit(process.pid, resource.RLIMIT_AS)[1])
        )
        assert checker.grade_answer(("\\int_0^1 x dx",), light_child.LARGE).verdict is Verdict.INCORRECT
        assert process.poll() is not None
        assert checker.grade_answer((identity(2)[0],), identity(2)[1]).verdict is Verdict.CORRECT


def test_a_child_has_the_memory_limit_of_the_settings(light: None) -> None:
    for memory_mib in (1024, 3072):
        with MathChecker(grader_settings(memory_mib=memory_mib)) as checker:
            limit, _ = resource.prlimit(child_of(checker).pid, resource.RLIMIT_AS)
            assert limit == memory_mib * 2**20


def test_closing_ends_the_children(light: None) -> None:
    checker = MathChecker(grader_settings())
    process = child_of(checker)
    checker.close()
    assert process.returncode is not None
    checker.close()
    assert checker.grade_answer(("5",), "5.0").verdict is Verdict.CORRECT
    with pytest.raises(StepvalueError, match="closed"):
        checker.grade_answer((identity(5)[0],), identity(5)[1])


def test_nothing_symbolic_is_loaded_into_the_caller_and_a_child_ends_when_it_dies() -> None:
    code = f"{light_child.INSTEAD}" + (
        "import os, sys\nfrom pipeline.graders.math.pool import MathChecker, MathConfig\n"
        "c = MathChecker(MathConfig())\nc.grade_answer(('1',), '\\\\sin^2 x + \\\\cos^2 x')\n"
        "loaded = {name.split('.')[0] for name in sys.modules} & {'sympy', 'math_verify', 'latex2sympy2_extended'}\n"
        "print(c._children[0].process.pid, *loaded, flush=True)\nos._exit(0)"
    )
    parent = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    (pid,) = map(int, parent.stdout.split())
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and Path(f"/proc/{pid}").exists():
        if " Z " in Path(f"/proc/{pid}/stat").read_text():
            return
        time.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists()
