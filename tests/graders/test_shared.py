"""`grade` uses one checker per process, from any thread, for values of any type, and also after a fork."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import graders
from pipeline.config.choices import Fallback
from pipeline.graders import Grade, Verdict, grade
from pipeline.graders.shared import shared_checker
from tests.conftest import ROOT
from tests.graders import light_child
from tests.settings import grader_settings

pytestmark = pytest.mark.slow

SLOW = grader_settings(deadline_seconds=20.0)


@pytest.mark.parametrize(
    ("gold", "prediction", "extracts", "verdict", "answer"),
    [
        ("72", "So \\boxed{72}.", True, "correct", "72"),
        ("72", "So \\boxed{71}.", True, "incorrect", "71"),
        (["7", "72"], "So \\boxed{72}.", True, "correct", "72"),
        (0.5, "#### 1/2", True, "correct", "1/2"),
        ("1/2", 0.5, False, "correct", "0.5"),
        ("72", "I do not know.", True, "no_answer", ""),
        ("72", "", True, "no_answer", ""),
        ("72", None, True, "no_answer", ""),
        ("72", None, False, "no_answer", ""),
        ("72", ["72"], False, "no_answer", ""),
        ("72", True, False, "no_answer", ""),
        ("", "72", False, "unparseable", ""),
        (None, None, True, "unparseable", ""),
        ([], "72", False, "unparseable", ""),
        ({"gold": 72}, "72", False, "unparseable", ""),
        ("\\frac{1}{", "2", False, "unparseable", "2"),
        ("\\sin 2x", "2\\sin x\\cos x", False, "correct", "2\\sin x\\cos x"),
    ],
)
def test_a_verdict_for_whatever_is_asked(gold: Any, prediction: Any, extracts: bool, verdict: str, answer: str) -> None:
    found = grade(gold, prediction, extracts=extracts, config=SLOW)
    assert (found.verdict, found.answer) == (verdict, answer)
    assert found.ms >= 0


def test_a_number_too_long_for_str_is_compared_up_to_a_limit() -> None:
    assert grade("72", 10**5000, extracts=False).verdict is Verdict.INCORRECT
    assert grade("1" + "0" * 5000, 10**5000, extracts=False).verdict is Verdict.CORRECT
    assert grade("72", 10**30_000, extracts=False).verdict is Verdict.OVER_LIMIT


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)


@given(gold=anything, prediction=anything.filter(lambda value: not isinstance(value, str)), extracts=st.booleans())
def test_no_type_raises(gold: Any, prediction: Any, extracts: bool) -> None:
    assert isinstance(grade(gold, prediction, extracts=extracts), Grade)


def test_settings_choose_the_checker_and_later_changes_to_them_do_not() -> None:
    strict = grader_settings(fallback=Fallback.none)
    assert grade("72", "It is 72", config=strict).verdict is Verdict.NO_ANSWER
    assert grade("72", "It is 72").verdict is Verdict.CORRECT
    checker = shared_checker(strict)
    assert shared_checker(grader_settings(fallback=Fallback.none)) is checker
    strict.fallback = grader_settings().fallback
    assert shared_checker(strict) is shared_checker() is not checker
    assert grade("72", "It is 73", config=grader_settings(fallback=Fallback.none)).verdict is Verdict.NO_ANSWER


def test_many_threads_share_one_checker() -> None:
    config = grader_settings(deadline_seconds=20.0, processes=2)
    found = []

    def work(number: int) -> None:
        found.append((shared_checker(config), grade(f"{number}x", f"x+{number - 1}x", extracts=False, config=config)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(checker) for checker, _ in found}) == 1
    assert [answered.verdict for _, answered in found] == [Verdict.CORRECT] * 8


PROCESSES = r"""
import multiprocessing
import os
import sys
from pipeline.graders import grade

ONE = r"\sin^2 x+\cos^2 x"

def in_process(prediction, answers):
    answers.put((os.getpid(), grade("1", prediction, extracts=False).verdict.value))

if __name__ == "__main__":
    assert grade("1", ONE, extracts=False).verdict == "correct"
    context = multiprocessing.get_context(sys.argv[1])
    answers = context.SimpleQueue()
    predictions = (ONE + "+0", ONE + "+10^{-20}")
    workers = [context.Process(target=in_process, args=(text, answers), daemon=True) for text in predictions]
    for worker in workers:
        worker.start()
    found = [answers.get() for _ in workers]
    for worker in workers:
        worker.join(30)
    assert sorted(verdict for _, verdict in found) == ["correct", "incorrect"], found
    assert len({pid for pid, _ in found} | {os.getpid()}) == 3
    assert grade("2", "1+" + ONE, extracts=False).verdict == "correct"
"""


@pytest.mark.parametrize(
    "method", ["fork", *(pytest.param(method, marks=pytest.mark.nightly) for method in ("spawn", "forkserver"))]
)
def test_other_processes_have_checkers_of_their_own(method: str, tmp_path: Path) -> None:
    (tmp_path / "processes.py").write_text(light_child.INSTEAD + PROCESSES)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "processes.py"), method],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_children_end_with_the_process() -> None:
    code = light_child.INSTEAD + (
        "from pipeline.graders import grade\nfrom pipeline.graders.shared import shared_checker\n"
        "assert grade('\\\\sin 2x', '2\\\\sin x\\\\cos x', extracts=False).verdict == 'correct'\n"
        "print(shared_checker()._children[0].process.pid)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_a_child_does_not_load_what_it_does_not_need() -> None:
    code = "import sys, pipeline.graders.math.child\nsys.exit('pipeline.graders.math.pool' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_the_package_offers_nothing_else() -> None:
    assert graders.__all__ == ["Grade", "Verdict", "grade"]
    with pytest.raises(AttributeError, match="no attribute 'grader'"):
        _ = graders.grader
