"""Lines for the user on standard error; and what this process, and processes that it starts, write, sent to a file."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.core.formatting import printable


@contextlib.contextmanager
def send_output(target: int, descriptors: Sequence[int] = (1, 2)) -> Iterator[None]:
    """Redirect these descriptors of this process to the open file `target`. Processes that it starts in the block keep writing
    there after the block."""
    _flush()
    saved = {descriptor: os.dup(descriptor) for descriptor in descriptors}
    for descriptor in descriptors:
        os.dup2(target, descriptor)
    try:
        yield
    finally:
        _flush()
        for descriptor, copy in saved.items():
            os.dup2(copy, descriptor)
            os.close(copy)


@contextlib.contextmanager
def capture_errors() -> Iterator[Path]:
    """Redirect standard error of this process, and of processes that it starts meanwhile, to the file that is yielded.

    The file is deleted after the block, so read it inside.
    """
    with (
        tempfile.NamedTemporaryFile(prefix="stepvalue-output-", suffix=".log") as log,
        send_output(log.fileno(), [2]),
    ):
        yield Path(log.name)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def say(line: str) -> None:
    """Write a line for the user to standard error. Names and messages in it may hold anything."""
    sys.stderr.write(f"stepvalue: {printable(line)}\n")
