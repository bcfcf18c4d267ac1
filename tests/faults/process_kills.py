"""SIGKILL, or SIGSTOP for a while, to processes of a real `label` with its private Ray, at a number of commits.

    python -m tests.faults.process_kills 30 [--stop] [--at-once 2] [KIND ...]

Each run is started as a user starts it. One of its processes is killed every few commits, up to `KILLS_EACH` times; where the
run ends of it, it is started again, at once. In the end it is compared with a run that lost nothing. The kinds of process are
the keys of `KINDS`. Rollouts of the embedded model differ between runs: there, only what was committed before a kill is
compared. With `--stop`, the kinds `grader` and `sandbox` change rows, as they should: a checker that is stopped is late.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

import psutil

from tests.checkout import stepvalue
from tests.faults.answers import code_problems, sums
from tests.faults.kills import Tally, compared
from tests.faults.runs import Found, found, logged

KILLS_EACH = 5
FEWEST_COMMITS, MOST_COMMITS = 1, 12
"""Between two kills."""
MOST_STARTS = 12
END_SECONDS = 200.0
"""Of a run that lost a process, and between two commits."""
GONE_SECONDS = 90.0
"""Ray's own agents end a minute after a driver that was killed."""
STOPPED_SECONDS = 1.0, 30.0
POLL_SECONDS = 0.02
PROBLEMS = 60
COMMON = ("estimator=fixed", "run.flush_seconds=0.2", "run.unit_problems=1", "run.report=false")


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is labelled. `exact`: two runs of it are the same. `quick`: settings that change nothing but the time it takes."""

    folder: Path
    settings: Sequence[str]
    quick: Sequence[str] = ()
    exact: bool = True

    @cached_property
    def expected(self) -> Found:
        """What it comes to."""
        quick = replace(self, settings=(*self.settings, *self.quick))
        calm = Run(work=quick, run_dir=self.folder / "calm")
        calm.finish()
        return found(calm.run_dir)


def oracle(folder: Path, tokens_per_second: int = 20_000) -> Work:
    speed = f"policy.lab.tokens_per_second={tokens_per_second}"
    settings = ("data=sample", "policy=lab", speed, "sampling.rollouts=24")
    return Work(folder=folder, settings=settings, quick=("policy.lab.tokens_per_second=0",))


def slow_oracle(folder: Path) -> Work:
    """For deaths that are noticed late: the workers go on writing for half a minute."""
    return oracle(folder, 1000)


def algebra(folder: Path) -> Work:
    settings = (f"data.path={sums(folder / 'rows.jsonl', PROBLEMS)}", "policy=answers", "sampling.rollouts=16")
    return Work(folder=folder, settings=settings)


def code(folder: Path) -> Work:
    data = (f"data.path={code_problems(folder / 'rows.jsonl', PROBLEMS)}", "data.answer_is_suite=true", "grader=code")
    settings = (*data, "policy=answers", "sampling.rollouts=4")
    return Work(folder=folder, settings=settings)


def embedded(folder: Path) -> Work:
    settings = ("data=sample", "data.limit=12", "sampling.rollouts=2", "sampling.max_tokens=16")
    return Work(folder=folder, settings=settings, exact=False)


@dataclass(frozen=True, slots=True)
class Victim:
    """A process to send a signal to: what its command line holds, and the work that it does."""

    words: str
    work: str


WORKS = {"oracle": oracle, "slow-oracle": slow_oracle, "algebra": algebra, "code": code, "embedded": embedded}
KINDS = {
    "driver": Victim("-m pipeline label", "oracle"),
    "worker": Victim("ray::_Actor", "oracle"),
    "raylet": Victim("/raylet/raylet ", "slow-oracle"),
    "gcs": Victim("gcs_server", "slow-oracle"),
    "grader": Victim("pipeline.graders.math.child", "algebra"),
    "sandbox": Victim("pipeline.graders.code.child", "code"),
    "engine": Victim("EngineCore", "embedded"),
    "embedded-driver": Victim("-m pipeline label", "embedded"),
    "embedded-worker": Victim("ray::_Actor", "embedded"),
    "embedded-raylet": Victim("/raylet/raylet ", "embedded"),
    "embedded-gcs": Victim("gcs_server", "embedded"),
}


@dataclass(slots=True, kw_only=True)
class Run:
    """A run directory, on which `label` is started again and again."""

    work: Work
    run_dir: Path
    starts: int = 0
    process: "subprocess.Popen[bytes] | None" = None
    families: list[psutil.Process] = field(default_factory=list)
    """Processes of all starts."""

    def start(self) -> None:
        if self.starts == MOST_STARTS:
            raise AssertionError(f"not done after {MOST_STARTS} starts: {self.said()}")
        self.starts += 1
        words = ("label", *COMMON, *self.work.settings, f"run_dir={self.run_dir}")
        self.process = stepvalue(self.run_dir.with_suffix(".log"), *words)

    def finish(self) -> None:
        """Start it until it is done."""
        while True:
            if self.process is None:
                self.start()
            assert self.process is not None
            self.wait(commits=sys.maxsize)
            if self.process.returncode == 0:
                return
            self.process = None

    def wait(self, *, commits: int) -> bool:
        """Until it has this number of commits, or ends. Whether it still runs."""
        assert self.process is not None
        seen, since = -1, time.monotonic()
        while self.process.poll() is None:
            if (now := self.commits()) >= commits:
                return True
            if now != seen:
                seen, since = now, time.monotonic()
            if time.monotonic() - since > END_SECONDS:
                self.process.kill()
                raise AssertionError(f"no commit and no end within {END_SECONDS:g} s: {self.said()}")
            time.sleep(POLL_SECONDS)
        return False

    def family(self) -> list[psutil.Process]:
        assert self.process is not None
        try:
            top = psutil.Process(self.process.pid)
            return [top, *top.children(recursive=True)]
        except psutil.Error:
            return []

    def commits(self) -> int:
        return sum(1 for path in (self.run_dir / "commits").glob("*.json") if not path.name.startswith("."))

    def rows(self) -> dict[object, tuple[object, ...]]:
        return {row[0]: row for row in logged(self.run_dir)}

    def said(self) -> str:
        return self.run_dir.with_suffix(".log").read_text()[-3000:]


class Blows:
    """Signals to processes of one kind until there were enough of them."""

    def __init__(self, name: str, work: Work, times: int, *, stop: bool) -> None:
        self.name = name
        self.tally = Tally()
        self._work, self._times, self._stop = work, times, stop
        self._luck = random.Random()

    def go(self) -> None:
        while self.tally.kills < self._times:
            run = Run(work=self._work, run_dir=self._work.folder / f"{self.name}-{self.tally.directories}")
            self.tally.directories += 1
            self._directory(run)
            self._compare(run)
            print(f"{self.name:<16} {json.dumps(asdict(self.tally))}", flush=True)

    def _directory(self, run: Run) -> None:
        kills = 0
        while kills < KILLS_EACH and self.tally.kills < self._times:
            if run.process is None:
                run.start()
            assert run.process is not None
            if not run.wait(commits=run.commits() + self._luck.randint(FEWEST_COMMITS, MOST_COMMITS)):
                if run.process.returncode == 0:
                    break
                run.process = None
                continue
            if self._strike(run):
                kills += 1
        run.finish()
        self.tally.starts += run.starts

    def _strike(self, run: Run) -> bool:
        family = run.family()
        victims = [each for each in family if KINDS[self.name].words in _command(each)]
        if not victims:
            time.sleep(POLL_SECONDS)
            return False
        before = run.rows()
        victim = self._luck.choice(victims)
        try:
            if self._stop:
                victim.send_signal(signal.SIGSTOP)
                time.sleep(self._luck.uniform(*STOPPED_SECONDS))
                victim.send_signal(signal.SIGCONT)
            else:
                victim.kill()
        except psutil.NoSuchProcess:
            return False
        run.families += family
        after = run.rows()
        changed = sum(after[row] != before[row] for row in before.keys() & after.keys())
        self.tally += Tally(kills=1, lost=len(before.keys() - after.keys()), changed=changed)
        return True

    def _compare(self, run: Run) -> None:
        there = found(run.run_dir)
        exact = self._work.exact
        self.tally += compared(there, self._work.expected) if exact else Tally(duplicated=len(there.doubled))
        for each in psutil.wait_procs(run.families, GONE_SECONDS)[1]:
            self.tally.survivors += 1
            print(f"survived: {_command(each)[:200]}", flush=True)
            each.kill()


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.process_kills")
    parser.add_argument("times", type=int, help="signals to each kind")
    parser.add_argument("kinds", nargs="*", metavar="KIND", choices=[*KINDS, []], help=", ".join(KINDS))
    parser.add_argument("--at-once", type=int, default=2, help="runs at the same time (2)")
    parser.add_argument("--stop", action="store_true", help="SIGSTOP and later SIGCONT instead of SIGKILL")
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="stepvalue-kills-") as name:
        works: dict[str, Work] = {}
        for kind in asked.kinds or KINDS:
            if (work := KINDS[kind].work) not in works:
                (folder := Path(name) / work).mkdir()
                works[work] = WORKS[work](folder)
                _ = works[work].expected
        blows = [Blows(kind, works[KINDS[kind].work], asked.times, stop=asked.stop) for kind in asked.kinds or KINDS]
        with ThreadPoolExecutor(asked.at_once) as pool:
            for done in [pool.submit(each.go) for each in blows]:
                done.result()
    print(f"{sum(each.tally.kills for each in blows)} signals, {sum(each.tally.wrong for each in blows)} wrong")
    return int(any(each.tally.wrong for each in blows))


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


if __name__ == "__main__":
    exit_code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(exit_code)
