"""math-verify beside our checker: the same cases, called as its documentation does, killed where it hangs.

`parse` of the gold, `parse` of the prediction, `verify` of both, all settings at their defaults. `parse` looks for
mathematics in `$...$`, so golds and bare answers stand in dollar signs, which suits it best of four ways tried (as they are;
only the answer in dollars; both in dollars; both boxed). Whole outputs are passed as they are.
"""

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from pipeline.core.records import Verdict
from tests.conftest import ROOT
from tests.graders.dev_files import Case, Outcome

HANG_SECONDS = 10.0
START_SECONDS = 120.0
HANG = "hang"
DIED = "died"


def judge_all(cases: Iterable[Case], folder: Path) -> list[Outcome]:
    """What math-verify says of each case, working in `folder`. A case that it does not survive costs that case only."""
    worker = _start(folder)
    outcomes = []
    try:
        for case in cases:
            if worker.poll() is not None:
                worker = _start(folder)
            outcomes.append(_judge(worker, case))
    finally:
        _end(worker)
    return outcomes


def _judge(worker: "subprocess.Popen[bytes]", case: Case) -> Outcome:
    answer = case.prediction if case.extracts else f"${case.prediction}$"
    assert worker.stdin is not None
    worker.stdin.write(json.dumps({"gold": f"${case.gold}$", "answer": answer}).encode() + b"\n")
    limit = case.max_seconds or HANG_SECONDS
    line = _line(worker, limit)
    if line is None or not line:
        _end(worker)
        return Outcome(case=case, verdict=HANG if line is None else DIED, seconds=limit)
    reply = json.loads(line)
    verdict = Verdict.CORRECT if reply["correct"] else Verdict.INCORRECT
    return Outcome(case=case, verdict=verdict.value, seconds=reply["seconds"])


def _start(folder: Path) -> "subprocess.Popen[bytes]":
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.bench.math_verify_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    if not _line(worker, START_SECONDS):
        raise SystemExit("math-verify does not start")
    return worker


def _end(worker: "subprocess.Popen[bytes]") -> None:
    worker.kill()
    worker.wait()
    for pipe in (worker.stdin, worker.stdout):
        if pipe is not None:
            pipe.close()


def _line(worker: "subprocess.Popen[bytes]", seconds: float) -> bytes | None:
    """One line, empty where the process ended, None where it said nothing in time."""
    assert worker.stdout is not None
    with selectors.DefaultSelector() as waiting:
        waiting.register(worker.stdout, selectors.EVENT_READ)
        return worker.stdout.readline() if waiting.select(seconds) else None
