"""Long outputs of programs are compared in a confined process, and cost the memory of the caller nothing."""

import json
import subprocess
import sys

import pytest

from pipeline.core.records import Verdict
from pipeline.graders.code.checker import AT_ONCE_BYTES, CodeChecker

pytestmark = pytest.mark.slow

ALLOWED_MIB = 50
LENGTH = 15 * 2**20
"""Near the limit of an output, and of a gold, where every line end takes two characters."""
# Prints how far the peak memory lies above what was taken before, in KiB. The first program warms everything up.
MEASURES = """
import json, sys
from pipeline.graders.code.checker import CodeChecker
from tests.graders.conftest import code_config

def resident(name):
    (line,) = (line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1])

gold, programs = json.load(sys.stdin)
with CodeChecker(code_config(cpu_seconds=20.0, deadline_seconds=60.0, suite_seconds=300.0)) as checker:
    assert checker.grade_answer((gold,), "print(0)").verdict == "incorrect"
    open("/proc/self/clear_refs", "w").write("5")  # the peak begins again
    before = resident("VmRSS")
    verdicts = [checker.grade_answer((gold,), program).verdict.value for program in programs]
print(json.dumps([verdicts, resident("VmHWM") - before]))
"""
WRITES = f"import os\ndata, left = {{line!r}} * 2**15, {LENGTH}\n" + (
    "while left > 0:\n    left -= os.write(1, data[:left])\nos.write(1, {last!r})"
)
HOSTILE = {"short lines": b"1\n", "one line": b"11 ", "wide characters": "\U0001f600".encode(), "no text": b"\xff"}


def growth_mib(gold: str, programs: list[str]) -> tuple[list[str], float]:
    """The verdicts on these programs, and the growth of the peak memory of the process that asks for them."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURES],
        input=json.dumps([gold, programs]),
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    verdicts, kib = json.loads(run.stdout)
    return verdicts, kib / 1024


@pytest.mark.usefixtures("code_checker")
@pytest.mark.parametrize(
    "name",
    [
        "one line",
        "no text",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("short lines", "wide characters")),
    ],
)
def test_an_output_costs_the_caller_no_memory(name: str) -> None:
    line = HOSTILE[name]
    whole = (line * LENGTH)[:LENGTH].decode("utf-8", "replace")
    gold = json.dumps({"inputs": [""], "outputs": [f"{whole}\n7"]}, ensure_ascii=False)
    wrong, right = (WRITES.format(line=line, last=last) for last in (b"\n8", b"\n7"))
    verdicts, grown = growth_mib(gold, [wrong, right])
    assert verdicts == [Verdict.INCORRECT.value, Verdict.CORRECT.value]
    assert grown < ALLOWED_MIB


@pytest.mark.parametrize("length", [AT_ONCE_BYTES - 2, AT_ONCE_BYTES + 2])
def test_an_output_of_any_length_is_judged_alike(code_checker: CodeChecker, length: int) -> None:
    gold = json.dumps({"inputs": [""], "outputs": ["\u00e4" * (length // 2) + "\ud800\n0.5"]})
    program = "import os\nos.write(1, '\u00e4'.encode() * {} + {!r})"
    # A lone surrogate is no text that a program can write, so nothing is equal to it.
    assert code_checker.grade_answer((gold,), program.format(length // 2, b"\n0.5")).verdict is Verdict.INCORRECT
    gold = gold.replace("\\ud800", "")
    for last, verdict in {b" \r\n0.50\n": Verdict.CORRECT, b"\n0.6": Verdict.INCORRECT}.items():
        assert code_checker.grade_answer((gold,), program.format(length // 2, last)).verdict is verdict
