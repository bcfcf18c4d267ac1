"""Stages run one after the other, and are remembered: a loop that was interrupted goes on."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT
from tests.loop.plan import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a finished stage took, in seconds of its last start."""

    name: str
    command: tuple[str, ...]
    seconds: float


def run_all(stages: Sequence[Stage], memory: Path) -> list[Done]:
    """Run what `memory`, a JSON file, does not hold as done with the same command, everything behind that, and always the last
    one, which prints the result. Raises SystemExit with a command's exit code if it fails."""
    done = still_done(stages[:-1], _remembered(memory))
    for stage in stages[len(done) :]:
        print(f"\n== {stage.name}\npython -m pipeline {' '.join(stage.command)}", flush=True)
        began = time.monotonic()
        code = subprocess.run(
            [sys.executable, "-m", "pipeline", *stage.command],
            cwd=ROOT,
            env={**os.environ, **stage.environment},
            check=False,
        ).returncode
        if code:
            print(f"{stage.name} ended with exit code {code}; start the loop again to go on", file=sys.stderr)
            raise SystemExit(code)
        done.append(Done(name=stage.name, command=stage.command, seconds=time.monotonic() - began))
        _remember(memory, done)
    return done


def still_done(stages: Sequence[Stage], remembered: Sequence[Done]) -> list[Done]:
    """Those of the stages that are done and need not be repeated, from the first one on."""
    kept = []
    for stage, done in zip(stages, remembered, strict=False):
        if (stage.name, stage.command) != (done.name, done.command):
            break
        kept.append(done)
    return kept


def _remembered(memory: Path) -> list[Done]:
    if not memory.exists():
        return []
    return [
        Done(name=entry["name"], command=tuple(entry["command"]), seconds=entry["seconds"])
        for entry in json.loads(memory.read_text(encoding="utf-8"))
    ]


def _remember(memory: Path, done: Sequence[Done]) -> None:
    entries = [{"name": each.name, "command": each.command, "seconds": each.seconds} for each in done]
    new = memory.with_suffix(".new")
    new.write_text(json.dumps(entries, indent=1), encoding="utf-8")
    new.replace(memory)
