"""What the checker of code problems and its child process tell each other."""

from dataclasses import dataclass
from enum import StrEnum

MAX_OUTPUT_BYTES = 16 * 2**20
"""Standard output of one run, and each file it writes."""


class Kind(StrEnum):
    """What a task runs, and the files that come with it."""

    SCRIPT = "script"
    """A program on its own: content, standard input, standard output."""
    SUITE = "suite"
    """Tests beside a program: content of the program, content of the tests, statement of the tests."""
    TESTS = "tests"
    """Whether tests can be read: content of the tests, statement."""
    PROBE = "probe"
    """What a process is kept from: content, statement."""


class Statement(StrEnum):
    """What the process with the tests says at its end."""

    PASSED = "passed"
    FAILED = "failed"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run and its limits."""

    kind: Kind
    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How a run ended.

    `began` is false where the sandbox could not be set up. `status` is the program's exit code, negative for a signal, None
    where it was ended from outside. `exhausted`: it used more processor time, threads or files than it may. `late`: wall time.
    """

    began: bool
    status: int | None
    exhausted: bool
    late: bool
