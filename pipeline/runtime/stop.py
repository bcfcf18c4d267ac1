"""Handles the signals that stop a run, at points where stopping is safe.

An exception from a signal handler can surface inside Ray's own code and break it in ways that nothing can catch. Therefore a
signal only sets a flag, and the run checks the flag between its steps. A second signal ends the process at once.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pipeline.core.errors import Interrupted

INTERRUPTED = "interrupted; committed work is kept: start the same command again to continue"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """Listens for SIGINT and SIGTERM on the main thread. On other threads it does nothing."""

    def __init__(self) -> None:
        self._raised = False
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}

    def listen(self) -> None:
        """Install the handlers. This is called again after Ray has started, because Ray installs its own handlers."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                signal.signal(number, self._notice)

    def release(self) -> None:
        """Restore the previous handlers."""
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Raise Interrupted if a signal has arrived."""
        if self._raised:
            raise Interrupted(INTERRUPTED)

    def _notice(self, _signal: int, _frame: FrameType | None) -> None:
        if self._raised:
            os._exit(Interrupted.exit_code)
        self._raised = True


@contextmanager
def stoppable() -> Iterator[StopSignal]:
    """A signal that listens within the block."""
    stop = StopSignal()
    stop.listen()
    try:
        yield stop
    finally:
        stop.release()


@contextmanager
def ended_politely() -> Iterator[None]:
    """Turn SystemExit into Interrupted: while Ray starts, its own SIGTERM handler ends the process with the signal's number."""
    try:
        yield
    except SystemExit as error:
        raise Interrupted(INTERRUPTED) from error
