"""Bounds for work that must not grow with the square of what it reads, where no clock decides and no other work on the machine;
and for waiting."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

POLL_SECONDS = 0.005
PROCESSOR_SECONDS = 20.0
"""Some hundred times what such work takes, and a fraction of what it takes if it grows with the square."""


@contextmanager
def bounded(seconds: float = PROCESSOR_SECONDS) -> Iterator[None]:
    """Breaks work off, regular expressions included, that has used so much of the processor."""

    def end(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it has used {seconds:g} s of the processor, and goes on")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def calls_of(work: Callable[[], object]) -> int:
    """How many functions work calls in this thread, those of C included."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def until(true: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for it. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not come true in {seconds} s")
        time.sleep(POLL_SECONDS)
