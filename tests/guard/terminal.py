"""The program as its users start it: commands in a process of their own. The workers of `label` are in that process too."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracles import SITE

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BATCH_SECONDS = 280.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command came to."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """Commands to be run in a folder, and what is to be made of their answers once all are there.

    Many parts share a process, for it takes longer to start than most commands do.
    """

    folder: Path
    commands: Sequence[str]
    collect: Callable[[Sequence[Answer]], dict[str, Any]]


def run(folder: Path, commands: Sequence[str]) -> list[Answer]:
    """The commands in turn, in `folder`, written as in a shell, in one process."""
    with tempfile.TemporaryDirectory() as aside:
        answers = Path(aside) / "answers.json"
        ended = subprocess.run(
            [sys.executable, "-m", "tests.guard.batch", str(answers)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{SITE}", "COLUMNS": "100"},
            input=json.dumps([shlex.split(command) for command in commands]),
            capture_output=True,
            text=True,
            timeout=BATCH_SECONDS,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError(f"the commands were not run: {ended.stderr[-2000:]}")
        return [Answer(**answer) for answer in json.loads(answers.read_text(encoding="utf-8"))]


def run_parts(parts: Mapping[str, Part]) -> dict[str, dict[str, Any]]:
    """What becomes of each part."""
    lines = [line for part in parts.values() for line in (f"cd {part.folder}", *part.commands)]
    answers = iter(run(ROOT, lines))
    found = {}
    for name, part in parts.items():
        next(answers)
        found[name] = part.collect([next(answers) for _ in part.commands])
    return found
