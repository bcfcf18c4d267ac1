"""The process that `algebra` runs in: one JSON task per line in, one JSON result per line out.

    {"gold": "\\\\frac12", "answer": "2^{-1}"}  ->  {"verdict": "correct"}
    {"parse": "\\\\frac12"}                     ->  {"verdict": "correct"} if it parses, else {"verdict": "unparseable"}

Covered: memory (RLIMIT_AS), processor time per task (RLIMIT_CPU, so that a child whose parent died does not spin on),
no core files, stray prints, text that would run as Python. Not covered: time as such. The parent kills a child that is late;
nothing here uses alarms.
"""

import json
import math
import os
import resource
import select
import sys
import time
from collections.abc import Iterator

from pipeline.core.records import Verdict
from pipeline.graders.math.algebra import judge, parses, warm_up
from pipeline.graders.math.unevaluated import evaluate_nothing

CPU_SLACK_SECONDS = 5
PARENT_CHECK_SECONDS = 10


def answer_task(task: dict[str, str], tolerance: float) -> Verdict:
    """Carry out one task of the protocol."""
    try:
        if "parse" in task:
            return Verdict.CORRECT if parses(task["parse"]) else Verdict.UNPARSEABLE
        return judge(task["gold"], task["answer"], tolerance)
    except RecursionError:
        return Verdict.UNPARSEABLE


def _lines() -> Iterator[bytes]:
    """Lines of standard input until it ends or the parent is gone (a fork of the parent may hold the pipe open)."""
    parent = os.getppid()
    poller = select.poll()
    poller.register(0, select.POLLIN)
    rest = b""
    while True:
        if not poller.poll(PARENT_CHECK_SECONDS * 1000):
            if os.getppid() != parent:
                return
            continue
        piece = os.read(0, 65536)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines


def _limit(kind: int, value: int) -> None:
    """Set a soft limit, within the hard one that this process was given."""
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def main(memory_mib: int, cpu_seconds: float, tolerance: float) -> None:
    """Serve tasks until standard input ends."""
    results = os.dup(1)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_AS, memory_mib << 20)
    evaluate_nothing()
    # What the first answers would wait for is the start's time.
    warm_up()
    os.write(results, b'{"ready": true}\n')
    for line in _lines():
        used = math.ceil(time.process_time() + cpu_seconds) + CPU_SLACK_SECONDS
        _limit(resource.RLIMIT_CPU, used)
        verdict = answer_task(json.loads(line), tolerance)
        os.write(results, json.dumps({"verdict": verdict.value}).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
