"""SIGKILL to one process of a real `label` with its private Ray, at a number of commits, for every kind of process.

    python -m tests.faults.process_kills 30 [embedded]

Each run is started as a user starts it, loses one process in the middle of its work, is started again until it is whole, and is
compared with a run that lost nothing. `embedded` adds the kind "engine core" and labels with the embedded model, whose rollouts
no two runs share: there, only what was committed before the kill is compared.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from tests.checkout import ROOT
from tests.faults.runs import Found, found, logged

KINDS = {
    "driver": "-m pipeline label",
    "worker": "ray::_Actor",
    "raylet": "/raylet/raylet ",
    "GCS": "gcs_server",
    "grader child": "pipeline.graders.math.child",
}
"""A kind of process -> what its command line holds."""
ENGINE_CORE = {"engine core": "EngineCore"}
ORACLE = ("policy=oracle", "policy.oracle.tokens_per_second=4000", "sampling.rollouts=24")
EMBEDDED = ("sampling.rollouts=2", "sampling.max_tokens=16", "data.limit=12")
COMMON = ("data=sample", "estimator=fixed", "run.flush_seconds=0.2", "run.unit_problems=1", "run.report=false")
MOST_STARTS = 6
END_SECONDS = 150.0
GONE_SECONDS = 90.0
"""Ray's own agents end a minute after a driver that was killed."""
POLL_SECONDS = 0.02


@dataclass(slots=True)
class Kills:
    """Of one kind: kills that met a directory with commits, starts after them, and what was wrong afterwards. `survivors`:
    processes of a start that ended, and stayed."""

    kills: int = 0
    starts: int = 0
    lost: int = 0
    doubled: int = 0
    changed: int = 0
    survivors: int = 0


def main(times: int, *, embedded: bool) -> int:
    settings = (*COMMON, *(EMBEDDED if embedded else ORACLE))
    kinds = {**KINDS, **(ENGINE_CORE if embedded else {})}
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="stepvalue-kills-") as name:
        calm = Path(name) / "calm"
        _finish(settings, calm)
        expected, commits = found(calm), _commits(calm)
        for kind, words in kinds.items():
            tally, luck = Kills(), random.Random(kind)
            while tally.kills < times:
                run_dir = Path(name) / f"{kind}-{tally.starts}"
                _one(tally, settings, run_dir, words, luck.randint(2, max(2, commits - 2)))
                _compare(tally, run_dir, expected, exact=not embedded)
            print(f"{kind:<13} {json.dumps(asdict(tally))}", flush=True)
            wrong += tally.lost + tally.doubled + tally.changed + tally.survivors
    return int(bool(wrong))


def _one(tally: Kills, settings: Sequence[str], run_dir: Path, words: str, commits: int) -> None:
    """One run: killed once at this number of commits, then started until it is whole."""
    process = _start(settings, run_dir)
    while process.poll() is None and _commits(run_dir) < commits:
        time.sleep(POLL_SECONDS)
    family = _family(process)
    victims = [each for each in family if words in _command(each)]
    if process.poll() is None and victims:
        before = {row[0] for row in logged(run_dir)}
        victims[0].send_signal(signal.SIGKILL)
        tally.kills += 1
        _end(process)
        left = psutil.wait_procs(family, GONE_SECONDS)[1]
        tally.survivors += len(left)
        for each in left:
            print(f"survived: {_command(each)[:200]}", flush=True)
            each.kill()
        tally.lost += len(before - {row[0] for row in logged(run_dir)})
    else:
        _end(process)
    tally.starts += 1 + (0 if process.returncode == 0 else _finish(settings, run_dir))


def _finish(settings: Sequence[str], run_dir: Path) -> int:
    """Start the same command until it is done. Returns the number of starts."""
    for number in range(1, MOST_STARTS + 1):
        process = _start(settings, run_dir)
        _end(process)
        if process.returncode == 0:
            return number
    raise AssertionError(f"not done after {MOST_STARTS} starts: {run_dir.with_suffix('.log').read_text()[-2000:]}")


def _start(settings: Sequence[str], run_dir: Path) -> "subprocess.Popen[bytes]":
    with run_dir.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "pipeline", "label", *settings, f"run_dir={run_dir}"],
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )


def _end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise AssertionError(f"it does not end within {END_SECONDS:g} s") from None


def _family(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    try:
        top = psutil.Process(process.pid)
        return [top, *top.children(recursive=True)]
    except psutil.Error:
        return []


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _commits(run_dir: Path) -> int:
    return sum(1 for path in (run_dir / "commits").glob("*.json") if not path.name.startswith("."))


def _compare(tally: Kills, run_dir: Path, expected: Found, *, exact: bool) -> None:
    there = found(run_dir)
    tally.doubled += len(there.doubled)
    if exact:
        tally.lost += len(expected.log.keys() - there.log.keys())
        tally.doubled += len(there.log.keys() - expected.log.keys())
        tally.changed += sum(there.log[row] != expected.log[row] for row in there.log.keys() & expected.log.keys())
        tally.changed += not there.labels.equals(expected.labels)


if __name__ == "__main__":
    code = main(int(sys.argv[1]), embedded="embedded" in sys.argv[2:])
    sys.stdout.flush()
    os._exit(code)
