"""Stages run one after the other, and are remembered: a loop that was interrupted goes on."""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.core.ids import content_id
from tests.checkout import ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One command of the loop, as what stands behind `python -m pipeline`, and environment variables it is given. `before`:
    what is called first. `shown_again`: it prints a result, so it is run again even if it is done."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None
    shown_again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a finished stage took, in seconds of its last start."""

    name: str
    command: tuple[str, ...]
    seconds: float


def code_of(*folders: Path) -> str:
    """Hash of the files in these folders: code and weights that a stage's result depends on."""
    files = sorted(file for folder in folders for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return content_id(*(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files))


def run_all(stages: Sequence[Stage], memory: Path, code: str) -> list[Done]:
    """Run what `memory`, a JSON file, does not hold as done with the same command, everything behind that, and what prints a
    result. Raises SystemExit with a command's exit code if it fails, and for a memory of other `code`, whose finished runs and
    models no command would make again."""
    done = still_done(stages, _remembered(memory, code))
    for place, stage in enumerate(stages):
        if place < len(done) and not stage.shown_again:
            continue
        stage.before()
        print(f"\n== {stage.name}\npython -m pipeline {' '.join(stage.command)}", flush=True)
        began = time.monotonic()
        exit_code = subprocess.run(
            [sys.executable, "-m", "pipeline", *stage.command],
            cwd=ROOT,
            env={**os.environ, **stage.environment},
            check=False,
        ).returncode
        if exit_code:
            print(f"{stage.name} ended with exit code {exit_code}; start the loop again to go on", file=sys.stderr)
            raise SystemExit(exit_code)
        done[place : place + 1] = [Done(name=stage.name, command=stage.command, seconds=time.monotonic() - began)]
        _remember(memory, done, code)
    return done


def still_done(stages: Sequence[Stage], remembered: Sequence[Done]) -> list[Done]:
    """Those of the stages that are done and need not be repeated, from the first one on."""
    kept = []
    for stage, done in zip(stages, remembered, strict=False):
        if (stage.name, stage.command) != (done.name, done.command):
            break
        kept.append(done)
    return kept


def _remembered(memory: Path, code: str) -> list[Done]:
    if not memory.exists():
        return []
    entries = json.loads(memory.read_text(encoding="utf-8"))
    if any(entry.get("code") != code for entry in entries):
        raise SystemExit(f"{memory.parent} was begun with other code: remove it, or name another folder")
    return [Done(name=entry["name"], command=tuple(entry["command"]), seconds=entry["seconds"]) for entry in entries]


def _remember(memory: Path, done: Sequence[Done], code: str) -> None:
    entries = [{"name": each.name, "command": each.command, "seconds": each.seconds, "code": code} for each in done]
    new = memory.with_suffix(".new")
    new.write_text(json.dumps(entries, indent=1), encoding="utf-8")
    new.replace(memory)
