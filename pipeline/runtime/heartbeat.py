"""Writes the heartbeat file of a start into the run directory: which process runs it, its progress, and how it ended.

A thread writes the file every `HEARTBEAT_SECONDS`, so that a slow store does not delay the run. Write errors are ignored; the
run detects a full disk by its own writes. A start that finds no work leaves no file, unless it is the first of its run.
"""

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace

from pipeline.core.errors import BudgetSpent, Interrupted, StoreError
from pipeline.core.progress import ProgressHistory, Status
from pipeline.runtime.worker_handle import Watcher
from pipeline.storage.commits import FOLDER as COMMITS
from pipeline.storage.location import without_durability
from pipeline.storage.starts import DONE, FAILED, INTERRUPTED, LIMITED, Start, new_start_id, this_process, write_start
from pipeline.storage.starts import FOLDER as STARTS
from pipeline.storage.storage import Storage

HEARTBEAT_SECONDS = 10.0
"""Time between two writes of the heartbeat file."""
LAST_WORD_SECONDS = 10.0
"""How long a run waits at its end for the last write."""
MESSAGE_CHARS = 1000


@contextmanager
def heartbeat(
    storage: Storage, price: float | None, watch: Watcher, settings: Mapping[str, object] | None = None
) -> Iterator[Watcher]:
    """Yield a watcher that records each status in the heartbeat file and passes it on to `watch`. `settings`: see `Start`.

    The last write records how the block ended. Errors of the block are raised.
    """
    beat = _Heartbeat(storage, price, watch, settings or {})
    try:
        yield beat
    except BaseException as error:
        beat.end(_ending(error), str(error) or type(error).__name__)
        raise
    beat.end(DONE)


def _ending(error: BaseException) -> str:
    match error:
        case Interrupted():
            return INTERRUPTED
        case BudgetSpent():
            return LIMITED
        case _:
            return FAILED


class _Heartbeat:
    """The record of the start, and the thread that writes it."""

    def __init__(self, storage: Storage, price: float | None, watch: Watcher, settings: Mapping[str, object]) -> None:
        self._storage = without_durability(storage)
        self._watch = watch
        self._clock_at_begin = time.monotonic()
        self._course = ProgressHistory()
        self._owed = False
        self._wake = threading.Event()
        self._over = threading.Event()
        self._writer = threading.Thread(target=self._write, name="heartbeat", daemon=True)
        began = time.time()
        self._start = Start(
            start_id=new_start_id(began),
            host=socket.gethostname(),
            pid=os.getpid(),
            process=this_process(),
            began_at=began,
            at=began,
            price=price,
            status=Status(stage="reading the input"),
            settings=settings,
        )
        self._writer.start()

    def __call__(self, status: Status) -> None:
        self._course.take(status, time.monotonic() - self._clock_at_begin)
        self._start = replace(self._start, status=status, samples=self._course.samples)
        if status.units_done < status.units:
            self._owed = True
            self._wake.set()
        self._watch(status)

    def end(self, ended: str, message: str = "") -> None:
        self._start = replace(self._start, ended=ended, message=message[:MESSAGE_CHARS])
        self._over.set()
        self._wake.set()
        self._writer.join(LAST_WORD_SECONDS)

    def _write(self) -> None:
        if not self._without(COMMITS):
            self._wake.wait(HEARTBEAT_SECONDS)
        beat = False
        while not self._over.is_set():
            self._write_beat()
            beat = True
            self._over.wait(HEARTBEAT_SECONDS)
        # The first start of a run leaves a file even if others sampled all rollouts: it records its settings.
        if beat or self._owed or self._start.ended != DONE or self._without(STARTS):
            self._write_beat()

    def _without(self, folder: str) -> bool:
        with suppress(StoreError):
            return not self._storage.names(folder)
        return False

    def _write_beat(self) -> None:
        with suppress(StoreError):
            write_start(self._storage, replace(self._start, at=time.time()))
