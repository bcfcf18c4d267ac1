"""math-verify beside our checker: the same cases, called as its documentation does, killed where it hangs.

`parse` of the gold, `parse` of the prediction, `verify` of both, all settings at their defaults. `parse` looks for
mathematics in `$...$`, so golds and bare answers stand in dollar signs, which suits it best of four ways tried (as they are;
only the answer in dollars; both in dollars; both boxed). Whole outputs are passed as they are.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from pipeline.core.records import Verdict
from pipeline.graders.line_process import Process, end, read_line, write_line
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
        end(worker)
    return outcomes


def _judge(worker: Process, case: Case) -> Outcome:
    answer = case.prediction if case.extracts else f"${case.prediction}$"
    write_line(worker, json.dumps({"gold": f"${case.gold}$", "answer": answer}).encode())
    limit = case.max_seconds or HANG_SECONDS
    verdict = DIED
    try:
        line = read_line(worker, limit)
    except TimeoutError:
        line, verdict = b"", HANG
    if not line:
        end(worker)
        return Outcome(case=case, verdict=verdict, seconds=limit)
    reply = json.loads(line)
    judged = Verdict.CORRECT if reply["correct"] else Verdict.INCORRECT
    return Outcome(case=case, verdict=judged.value, seconds=reply["seconds"])


def _start(folder: Path) -> Process:
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.bench.math_verify_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    if not read_line(worker, START_SECONDS):
        raise SystemExit("math-verify does not start")
    return worker
