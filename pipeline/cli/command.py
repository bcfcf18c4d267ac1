"""What a command is."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pipeline.core.errors import Interrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`run` gets the composed settings, an instance of `schema`, and returns the exit code. Raises StepvalueError.

    `examples` stand in its help, above its groups and settings. A flag is a setting that `--name` makes true.
    """

    name: str
    summary: str
    examples: str
    schema: type
    run: Callable[[Any], int]
    flags: tuple[str, ...] = ()
    check: Callable[[Any], object] | None = None
    """Raises UsageError for settings that do not go together."""


def write_out(text: str) -> None:
    """Write to standard output, at once. Where nobody reads it any more, the command ends silently with 1, as rich ends it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        # What is left in the stream must not fail again when Python flushes it at exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise SystemExit(1) from error


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C in the block becomes Interrupted."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted; nothing was changed that counts: start the same command again") from error
