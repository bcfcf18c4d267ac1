"""The program as its users start it: commands in a process of their own, and a Ray head that they join."""

import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ray_head import ray_head

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


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """Runs commands; `label` joins the Ray cluster at `address`."""

    address: str
    environment: Mapping[str, str]

    def run(self, folder: Path, commands: Sequence[str]) -> list[Answer]:
        """The commands in turn, in `folder`, written as in a shell."""
        words = [self._words(shlex.split(command)) for command in commands]
        with tempfile.TemporaryDirectory() as aside:
            answers = Path(aside) / "answers.json"
            ended = subprocess.run(
                [sys.executable, "-m", "tests.guard.batch", str(answers)],
                cwd=folder,
                env={**os.environ, **self.environment},
                input=json.dumps(words),
                capture_output=True,
                text=True,
                timeout=BATCH_SECONDS,
                check=False,
            )
            if ended.returncode:
                raise RuntimeError(f"the commands were not run: {ended.stderr[-2000:]}")
            return [Answer(**answer) for answer in json.loads(answers.read_text(encoding="utf-8"))]

    def run_parts(self, parts: Mapping[str, Part]) -> dict[str, dict[str, Any]]:
        """What becomes of each part."""
        lines = [line for part in parts.values() for line in (f"cd {part.folder}", *part.commands)]
        answers = iter(self.run(ROOT, lines))
        found = {}
        for name, part in parts.items():
            next(answers)
            found[name] = part.collect([next(answers) for _ in part.commands])
        return found

    def _words(self, words: list[str]) -> list[str]:
        return [*words, f"cluster.address={self.address}"] if words[0] == "label" else words


@contextlib.contextmanager
def opened() -> Iterator[Terminal]:
    """A terminal with a Ray head behind it, on the loopback interface."""
    with ray_head(dashboard=False) as made:
        yield Terminal(address=made.address, environment={**made.environment, "PYTHONPATH": str(ROOT)})
