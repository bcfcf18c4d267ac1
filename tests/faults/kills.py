"""SIGKILL to everything at random times, again and again, on directories that grow: what is lost, doubled, changed, repeated.

    python -m tests.faults.kills 1000

A directory is labelled, killed, started again until it is whole, checked, and then asked for more rollouts per prefix. The
oracle engine records when it answered what, so the work that a kill cost is known: rollouts that were answered and not
committed.
"""

import json
import os
import random
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tests.deadlines import until
from tests.faults.conftest import MEMORY
from tests.faults.runs import FINISH_SECONDS, SETTINGS, Found, Scene, Start, committed, found, logged, scene, survivors

AT_ONCE = 2
PROBLEMS = 12
DRAWS = 2  # of the one problem without a chain, see SETTINGS
FIRST_TARGET, LAST_TARGET, STEP = 40, 160, 20
FLUSH_SECONDS = 0.2
LONGEST_SECONDS = 0.6
"""A start is killed after a time between 0 and this, counted from its beginning or from the first answer."""
KILLS_SETTINGS = (*SETTINGS, f"run.flush_seconds={FLUSH_SECONDS}", "policy.lab.tokens_per_second=30000")


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of rollouts, of committed files that changed, and of kills and starts. Seconds are the most between the answer
    of a rollout that had to be repeated and the kill."""

    kills: int = 0
    starts: int = 0
    directories: int = 0
    finished: int = 0
    lost: int = 0
    duplicated: int = 0
    changed: int = 0
    answered: int = 0
    repeated: int = 0
    survivors: int = 0
    seconds_repeated: float = 0.0

    @property
    def wrong(self) -> int:
        return self.lost + self.duplicated + self.changed + self.survivors

    def __add__(self, other: "Tally") -> "Tally":
        sums = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return Tally(**{**sums, "seconds_repeated": max(self.seconds_repeated, other.seconds_repeated)})


class Expected:
    """What a directory comes to without a kill, by rollouts per prefix."""

    def __init__(self, folder: Path) -> None:
        self._calm = scene(folder, PROBLEMS, (*KILLS_SETTINGS, "policy.lab.tokens_per_second=0"))
        self._known: dict[int, Found] = {}
        self._lock = threading.Lock()

    def at(self, target: int) -> Found:
        with self._lock:
            for step in range(FIRST_TARGET, target + 1, STEP):
                if step not in self._known:
                    self._calm.finish(f"sampling.rollouts={step}")
                    self._known[step] = found(self._calm.run_dir)
            return self._known[target]


def directory(folder: Path, kills: int, expected: Expected, luck: random.Random) -> Tally:
    """One directory, killed up to `kills` times while it grows to `LAST_TARGET`."""
    mine = scene(folder, PROBLEMS, KILLS_SETTINGS)
    tally = Tally(directories=1)
    records: dict[str, bytes] = {}
    for target in range(FIRST_TARGET, LAST_TARGET + 1, STEP):
        whole = False
        while not whole:
            (mine.folder / "answered").unlink(missing_ok=True)
            start = mine.start(f"sampling.rollouts={target}", workers=luck.choice((1, 2)))
            tally.starts += 1
            if tally.kills < kills:
                if luck.random() < 0.75:  # most of them while there is work to lose
                    _until_answered(mine, start)
                start.process.join(luck.uniform(0, LONGEST_SECONDS))
            else:
                start.wait()
            whole = start.process.exitcode is not None
            if whole and start.process.exitcode != 0:
                raise AssertionError(f"exit code {start.process.exitcode}:\n{start.output}")
            if not whole:
                tally += _killed(mine, start)
            tally += Tally(answered=sum(len(ids) for _, ids in answered(mine)))
            tally += _changed(records, mine)
            records = committed(mine.run_dir, "*")
        tally += compared(found(mine.run_dir), expected.at(target))
    mine.clear_away()
    return tally


def _until_answered(mine: Scene, start: Start) -> None:
    until(lambda: start.process.exitcode is not None or (mine.folder / "answered").exists(), FINISH_SECONDS)


def _killed(mine: Scene, start: Start) -> Tally:
    killed_at = time.monotonic()
    start.kill()
    left = survivors(mine, 5)
    kept = {row[0] for row in logged(mine.run_dir)} if mine.run_dir.exists() else set()
    again = [(when, rollout) for when, ids in answered(mine) for rollout in ids if rollout not in kept]
    waited = max((killed_at - when for when, _ in again), default=0.0)
    return Tally(kills=1, repeated=len(again), seconds_repeated=waited, survivors=len(left))


def answered(mine: Scene) -> list[tuple[float, list[str]]]:
    """When the engines of the last start answered which rollouts; draws of solutions are left out, they are few."""
    path = mine.folder / "answered"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    batches = [(float(line[0]), line[1:]) for line in lines if len(line) > 1]
    return [(when, ids) for when, ids in batches if len(ids) > DRAWS]


def _changed(before: dict[str, bytes], mine: Scene) -> Tally:
    now = committed(mine.run_dir, "*")
    return Tally(changed=sum(now.get(name) != data for name, data in before.items()))


def compared(there: Found, expected: Found) -> Tally:
    """A finished directory against what it must hold."""
    rows = [rollout for rollout, row in expected.log.items() if rollout in there.log and there.log[rollout] != row]
    return Tally(
        finished=1,
        lost=len(expected.log.keys() - there.log.keys()),
        duplicated=len(there.doubled) + len(there.log.keys() - expected.log.keys()),
        changed=len(rows) + (not there.labels.equals(expected.labels)),
    )


def main(kills: int, seed: int = 0) -> int:
    """Kill so often and print what came of it; 1 where anything was lost, doubled or changed."""
    began = time.monotonic()
    total = Tally()
    with tempfile.TemporaryDirectory(prefix="stepvalue-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        folder = Path(name)
        expected = Expected(folder / "calm")
        expected.at(LAST_TARGET)
        number = 0
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while total.kills < kills:
                share = -(-(kills - total.kills) // AT_ONCE)
                runs = [
                    pool.submit(
                        directory, folder / f"{number + at}", share, expected, random.Random(seed + number + at)
                    )
                    for at in range(AT_ONCE)
                ]
                number += AT_ONCE
                total += sum((run.result() for run in runs), Tally())
                seconds = time.monotonic() - began
                print(
                    f"{total.kills} kills, {seconds:.0f} s, {total.wrong} lost, doubled, changed or alive", flush=True
                )
    print(json.dumps(asdict(total), indent=1))
    print(
        f"a kill cost at most {total.seconds_repeated:.2f} s of answers with run.flush_seconds={FLUSH_SECONDS:g}; "
        f"{total.repeated / max(1, total.answered):.1%} of all rollouts were sampled again"
    )
    return int(bool(total.wrong))


if __name__ == "__main__":
    code = main(int(sys.argv[1]))
    sys.stdout.flush()
    os._exit(code)
