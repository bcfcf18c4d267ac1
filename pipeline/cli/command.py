"""The type of a command, and how a command is interrupted."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from types import FrameType
from typing import IO, TYPE_CHECKING, Any

from pipeline.core.errors import Interrupted
from pipeline.core.formatting import plain_lines
from pipeline.core.registry import Registry

if TYPE_CHECKING:
    from pipeline.cli.workers import Work

IMPORT_PAUSE_SECONDS = 0.01
_IMPORTING = "<frozen importlib"
FOLDER, NAME = "--config-dir", "--config-name"
"""The options that name settings of a user's own: a folder of files, and a file in it."""
SHORT = {"-cd": FOLDER, "-cn": NAME}
MULTIRUN = "--multirun"
SHORT_MULTIRUN = "-m"
VALUED_OPTIONS = {FOLDER: "FOLDER", NAME: "NAME"}
"""The options that take a value -> what the value is."""
OPTION_MEANINGS = {
    FOLDER: "your own options (FOLDER/policy/mine.yaml) and experiment=NAME",
    NAME: "your own settings (FOLDER/NAME.yaml), such as --cfg job prints",
    MULTIRUN: "a run for each of several values: estimator.threshold=0.3,0.5",
}


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
    work: "Work[Any, Any] | None" = None
    """What its workers do, if it has any. A Python call has it done in another process."""
    notes: str = ""
    """What else a user should know, for `--help-all`."""
    flags: tuple[str, ...] = ()
    short: Mapping[str, str] = field(default_factory=dict)
    """A short key -> the setting that it stands for."""
    chooses: tuple[str, Registry[Any]] | None = None
    """A setting that names an implementation, and its registry. The implementation's settings are a section of their own."""
    offers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Group -> the options that help and completion show, for a group whose other options make no sense here."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """`group=option` -> why it cannot be chosen here, and what to choose."""
    implied: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda _: {}
    """The settings that are written, key -> value -> the options of groups that follow from them."""
    check: Callable[[Any], object] | None = None
    """Raises UsageError for settings that contradict each other."""
    sweeps: bool = False
    """It takes MULTIRUN: a run for each of several values."""
    continues: bool = False
    """Its settings are those of the run in `run_dir`, unless they are given."""

    @property
    def plain_options(self) -> dict[str, str]:
        """The options without a value that are its own -> what they mean."""
        flags = {f"--{flag}": f"{flag}=true" for flag in self.flags}
        return flags | ({MULTIRUN: OPTION_MEANINGS[MULTIRUN]} if self.sweeps else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """What a command does in its own process. `finds`: module and name of the function that does it, which a Python call has
    done too. It gets the settings. `shows` prints what it returns, and may return the exit code."""

    finds: str
    shows: Callable[[Any, Any], int | None]

    def __call__(self, config: Any) -> int:
        with interruptible():
            found = named_function(self.finds)(config)
        return self.shows(config, found) or 0


def named_function(where: str) -> Callable[..., Any]:
    """The function of `module:name`."""
    module, _, name = where.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def imported(where: str) -> Callable[..., Any]:
    """The function of `module:name`, whose module is imported when it is called."""
    return lambda *arguments: named_function(where)(*arguments)


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output as `write_out` does, to a terminal in whole words. Names in them may hold anything:
    control characters are replaced."""
    from pipeline.display.terminal import whole_words

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    write_out("".join(f"{whole_words(part, width)}\n" for line in lines for part in plain_lines(line).split("\n")))


def write_out(text: str) -> None:
    """Write to standard output and flush. If the reader has closed it, the command ends silently with exit code 1."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        drop_rest(sys.stdout)
        raise SystemExit(1) from error


def drop_rest(stream: IO[Any]) -> None:
    """What is left in the buffer of a stream that cannot be written must not fail again when Python flushes it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class Interruption(KeyboardInterrupt):
    """Raised by a signal in a command.

    A subclass, because catching KeyboardInterrupt itself is not enough. If one passes through `exec` of a text, for example
    when a dataclass is made, CPython later ends the process by SIGINT, whatever its exit code
    (`_Py_UnhandledKeyboardInterrupt`).
    """


@contextmanager
def interrupt_on(*numbers: signal.Signals) -> Iterator[None]:
    """In the block, these signals raise Interruption in the main thread.

    During an import they are delayed by IMPORT_PAUSE_SECONDS at a time, because an exception in an import callback would be
    printed and lost.
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
    """Turn Ctrl-C in the block into Interrupted."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted; no result was written: start the same command again") from error
