"""One driver per run directory, where a store refuses nobody: a file that names the driver at work.

Who finds none writes his own, waits, and goes on if it still stands: of two that looked at the same moment, the later writer.
The wait must outlast the time from a look to the end of a write. A driver that is killed leaves its marker behind.
"""

import contextlib
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator

from pipeline.core.errors import Absent, RunConflict, StoreError
from pipeline.storage.storage import Storage

MARKER = "driver.json"
_SETTLE_SECONDS = 3.0
_SHOWN_CHARS = 60


@contextlib.contextmanager
def marked(storage: Storage, settle_seconds: float = _SETTLE_SECONDS) -> Iterator[None]:
    """Be the driver that the marker names. Raises RunConflict where it names another, StoreError."""
    if standing := _standing(storage):
        raise RunConflict(_taken(storage, standing))
    mine = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "id": secrets.token_hex(8)}).encode()
    try:
        storage.replace(MARKER, mine)
        time.sleep(settle_seconds)
        if (standing := _standing(storage)) != mine:
            raise RunConflict(_taken(storage, standing))
        yield
    finally:
        # A marker that cannot be taken away is told by the next start; what ended this run is told now.
        with contextlib.suppress(StoreError):
            if _standing(storage) == mine:
                storage.remove(MARKER)


def _standing(storage: Storage) -> bytes:
    try:
        return storage.read(MARKER)
    except Absent:
        return b""


def _taken(storage: Storage, marker: bytes) -> str:
    if not marker:
        return f"another job started on {storage.place} at the same moment: start again if that was not meant"
    return (
        f"another job works on {storage.place}, where it left {MARKER}: {_owner(marker)}. Wait for it or choose another "
        f"run_dir; if that job is dead, delete {storage.place}/{MARKER} and start again"
    )


def _owner(marker: bytes) -> str:
    try:
        fields = json.loads(marker)
        host, pid = str(fields["host"]), int(fields["pid"])
    except (ValueError, KeyError, TypeError):
        return "by whom it does not say"
    return f"process {pid} on {host[:_SHOWN_CHARS]!r}"
