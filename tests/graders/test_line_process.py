"""A line from a child: the time for it is that of the whole line."""

import os
import select
import time
from types import SimpleNamespace
from typing import cast

import pytest

from pipeline.graders.line_process import Process, read_line


class Dripping:
    """A child that writes a character a second, and the clock and the poller that see it."""

    def __init__(self) -> None:
        self.now = 0.0

    def register(self, _descriptor: int, _events: int) -> None: ...

    def poll(self, milliseconds: float) -> list[tuple[int, int]]:
        assert self.now < 100, "it is waited for without end"
        ready = milliseconds >= 1000
        self.now += 1 if ready else milliseconds / 1000
        return [(0, select.POLLIN)] if ready else []


def test_a_line_that_drips_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Dripping()
    monkeypatch.setattr(select, "poll", lambda: child)
    monkeypatch.setattr(time, "monotonic", lambda: child.now)
    monkeypatch.setattr(os, "read", lambda *_arguments: b"x")
    process = cast(Process, SimpleNamespace(stdout=SimpleNamespace(fileno=lambda: 0)))
    with pytest.raises(TimeoutError):
        read_line(process, 5.5)
    assert child.now == 5.5
