"""Where this checkout lies, and rows written as JSONL. Needs no development package: the GPU image has this and no pytest."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def write_rows(path: Path, rows: Sequence[dict[str, object]]) -> Path:
    """A JSONL file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def stepvalue(log: Path, *words: str, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
    """The command line as a user starts it, with more variables. What it prints is added to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "pipeline", *words],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
