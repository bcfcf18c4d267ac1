"""All errors that users can meet, by cause. Each message names the place of the error and the remedy."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from string import Formatter


class Name(str):
    """A part of a message for which a command may have a name of its own: of a setting, or a remedy."""

    __slots__ = ()


RUN_DIR = Name("run_dir")
"""The setting that says where a run is."""


def said(template: str, **values: object) -> tuple[str, ...]:
    """The parts of a message. What stands in braces is one of `values`, or else a `Name`."""
    parts: list[str] = []
    for literal, field, form, _ in Formatter().parse(template):
        parts.append(literal)
        if field is not None:
            parts.append(format(values[field], form or "") if field in values else Name(field))
    return tuple(parts)


def first_line(error: BaseException) -> str:
    """The first line of an error's message that is not blank, or the name of the error's class."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


class StepvalueError(Exception):
    """Base of all errors that this package raises on purpose. `exit_code` is the exit status of the command line.

    The arguments are the parts of the message, see `said`.
    """

    exit_code = 1

    def __str__(self) -> str:
        return "".join(map(str, self.args))


@contextmanager
def named(names: Mapping[str, str]) -> Iterator[None]:
    """Errors that are raised inside have the names of the command that has called: name there -> name here. What is no `Name`
    stays, so a user's path is never touched."""
    try:
        yield
    except StepvalueError as error:
        error.args = tuple(names.get(part, part) if isinstance(part, Name) else part for part in error.args)
        raise


class UsageError(StepvalueError):
    """The command line or a setting is wrong. Nothing was started."""

    exit_code = 2


class UnknownSetting(UsageError):
    """There is no such setting, and none with a name like it. The last part but one of the message is the setting."""


class InputError(StepvalueError):
    """The input as a whole cannot be used. (A single bad row becomes a `Reject` instead.)"""

    exit_code = 2


class PolicyError(StepvalueError):
    """The policy cannot be loaded. Unless it is a PlaceError, the model or a setting is the cause, on every machine."""


class PlaceError(PolicyError):
    """The policy cannot be loaded at this place (a machine or a device), but perhaps at another one.

    The device is full or broken, the machine cannot reach the model's files, or a process of the engine died."""


class EngineDied(StepvalueError):
    """The engine stopped working during a run. The run directory keeps all committed work: start the same command again."""


class WorkerLost(EngineDied):
    """A worker was lost together with its machine. This does not count as a failed attempt of its units."""


class ClusterError(StepvalueError):
    """There is no Ray cluster at the given address, it lacks the requested resources, or this machine's part of it died."""


class Interrupted(StepvalueError):
    """A signal stopped the run. The same command continues it."""

    exit_code = 75


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C, or an interrupted cell, has stopped `label` in Python. The same call continues the run.

    It is a KeyboardInterrupt, as from any other Python call, and so no Exception: it also ends loops around the call that
    catch errors."""


class BudgetSpent(StepvalueError):
    """The run has reached the limit of its plan. The same command with a larger limit continues it."""


class RunConflict(StepvalueError):
    """The run directory belongs to another run, or another job works on it. Nothing that it holds was changed."""

    exit_code = 2


def other_job(run_dir: str) -> RunConflict:
    """The error where another job works on the same run directory."""
    return RunConflict(f"another job works on {run_dir}: wait for it, or choose another ", RUN_DIR)


class StoreError(StepvalueError):
    """The run directory cannot be written, or a file in it is damaged."""


class UploadError(StepvalueError):
    """What is complete on this machine could not be uploaded. It stays, and the upload can be repeated."""


class Unreachable(StoreError):
    """The store of the run directory does not answer or denies access. Its content is unknown, not damaged."""


class Absent(StoreError):
    """A file is missing in the run directory."""


class Damaged(StoreError):
    """The content of a file in the run directory differs from what was committed."""


class PluginError(StepvalueError):
    """An installed plug-in failed. The run directory keeps the results from before the failure."""
