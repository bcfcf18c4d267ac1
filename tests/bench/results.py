"""`RESULTS.md`: what benches have printed, with date, commit and machine. Written to only when asked."""

import io
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import psutil

from tests.checkout import ROOT

RESULTS = ROOT / "tests" / "bench" / "RESULTS.md"
FLAG = "--record"


@contextmanager
def printed(command: str, *, record: bool, results: Path = RESULTS) -> Iterator[None]:
    """Print where the figures come from; with `record`, append what is printed within to `results` where it ends well."""
    copy = _Copied(sys.stdout)
    with redirect_stdout(copy):
        print(origin(), flush=True)
        yield
    if record:
        with results.open("a", encoding="utf-8") as file:
            file.write(block(command, copy.text()))


def block(command: str, text: str) -> str:
    """What a command has printed, as a section. Its first line says where."""
    first, _, rest = text.partition("\n")
    return f"\n## {command}\n\n{first}\n\n```\n{rest.strip(chr(10))}\n```\n"


def origin() -> str:
    """Date, commit and machine. Load: processes that wanted a core in the minute before."""
    changed = ", with changes that are not committed" if _git("status", "--porcelain") else ""
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {_git('rev-parse', '--short', 'HEAD') or 'unknown'}{changed}; "
        f"{_processor()}, {len(os.sched_getaffinity(0))} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, "
        f"Python {platform.python_version()}; load {os.getloadavg()[0]:.1f} before"
    )


class _Copied(io.TextIOBase):
    """Passes text on, and keeps it."""

    def __init__(self, onward: TextIO) -> None:
        self._onward = onward
        self._kept: list[str] = []

    def write(self, text: str) -> int:
        self._kept.append(text)
        return self._onward.write(text)

    def flush(self) -> None:
        self._onward.flush()

    def text(self) -> str:
        return "".join(self._kept)


def _git(*arguments: str) -> str:
    if shutil.which("git") is None:
        return ""
    found = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
