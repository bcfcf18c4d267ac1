"""A stand-in for `pipeline.graders.math.child` with its lines and its limits, which starts in a moment: it has no algebra."""

import json
import os
import signal
import sys
from collections.abc import Sequence

from pipeline.graders.line_child import limit_next_task, lines, results_alone
from pipeline.graders.line_process import Process, start_module

LARGE = "\\prod_{k=1}^{3000} (x+k)^{k}"
"""An answer for which it takes 256 MiB."""
INSTEAD = """
from pipeline.graders import line_process
from tests.graders import light_child
line_process.start_module = light_child.start
"""
"""Lines of a script whose checkers have such children."""


def start(module: str, arguments: Sequence[str]) -> Process:
    """As `start_module`, whatever the module."""
    return start_module("tests.graders.light_child", arguments)


def main(memory_mib: int, cpu_seconds: float) -> None:
    """Sines are right but for a small rest, and nothing else is. It stalls on sums."""
    results = results_alone(memory_mib)
    os.write(results, b'{"ready": true}\n')
    for line in lines():
        limit_next_task(cpu_seconds)
        answer = json.loads(line)["answer"]
        if answer == LARGE:
            bytes(256 << 20)
        if "\\sum" in answer:
            signal.pause()
        right = "sin" in answer and "10^{-20}" not in answer
        os.write(results, b'{"verdict": "%s"}\n' % (b"correct" if right else b"incorrect"))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
