"""What a command is."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from pipeline.core.doors import Door
from pipeline.core.errors import Interrupted

IMPORT_PAUSE_SECONDS = 0.01
_IMPORTING = "<frozen importlib"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`run` gets the composed settings, an instance of `schema`, and returns the exit code. Raises StepvalueError.

    A flag is a setting that `--name` makes true.
    """

    name: str
    summary: str
    """For the list of commands."""
    about: str
    """What it does, in a sentence or two."""
    examples: tuple[str, ...]
    """Command lines, without the program's name. `-h` shows the first ones, `--help-all` shows them all."""
    most_used: tuple[str, ...]
    """The settings and groups that `-h` explains: `help.MOST_SETTINGS` at most."""
    schema: type
    run: Callable[[Any], int]
    notes: str = ""
    """What else a user should know, for `--help-all`."""
    flags: tuple[str, ...] = ()
    chooses: tuple[str, Door[Any]] | None = None
    """A setting that names an implementation behind a door. The implementation's own settings are a section beside it."""
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


class Interruption(KeyboardInterrupt):
    """What a signal raises in a command.

    KeyboardInterrupt itself is not caught for good: where one passes through `exec` of a text, as in the making of a dataclass,
    CPython ends the process by SIGINT at last, whatever exit code it was given (`_Py_UnhandledKeyboardInterrupt`).
    """


@contextmanager
def interrupted_by(*numbers: signal.Signals) -> Iterator[None]:
    """These signals raise Interruption in the block, on the main thread.

    In the import machinery they wait, IMPORT_PAUSE_SECONDS at a time: what one of its callbacks raises is printed and lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code.co_filename.startswith(_IMPORTING):
            signal.setitimer(signal.ITIMER_REAL, IMPORT_PAUSE_SECONDS)
            return
        raise Interruption

    before = {number: signal.signal(number, interrupt) for number in (*numbers, signal.SIGALRM)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C in the block becomes Interrupted."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted; nothing was changed that counts: start the same command again") from error
