"""What a command is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pipeline.errors import Interrupted


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


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C in the block becomes Interrupted."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted; nothing was changed that counts: start the same command again") from error
