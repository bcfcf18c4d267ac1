"""Signals that ask a run to stop, noticed where stopping is safe.

An exception raised out of a signal handler can surface inside Ray's own code, and end it in ways that nothing can catch; so a
signal only raises a flag, and the run looks at it between its steps. A second signal ends the process at once.
"""

import os
import signal
import threading
from types import FrameType

from pipeline.core.errors import Interrupted

INTERRUPTED = "interrupted; what was committed is kept: start the same command again to go on"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """Listens for SIGINT and SIGTERM on the main thread; elsewhere it never stops anything."""

    def __init__(self) -> None:
        self._raised = False
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}

    def listen(self) -> None:
        """Take the signals. Called again after Ray has started, because Ray puts its own handlers in place."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                signal.signal(number, self._notice)

    def release(self) -> None:
        """Put back the handlers that were there before."""
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Raise Interrupted when a signal has come."""
        if self._raised:
            raise Interrupted(INTERRUPTED)

    def _notice(self, _signal: int, _frame: FrameType | None) -> None:
        if self._raised:
            os._exit(Interrupted.exit_code)
        self._raised = True
