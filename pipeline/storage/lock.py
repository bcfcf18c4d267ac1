"""Allows one driver per run directory. This saves cost. Where the first commit wins, results are correct without it.

In a folder, the kernel holds a lock. In a store without conditional writes, a marker file names the active driver. A driver
that finds no marker writes its own, waits, and continues if its marker is still there. Of two drivers that check at the same
moment, the later writer continues. The wait must be longer than the time from a check to the end of a write. A driver that is
killed leaves its marker in the directory.
"""

import errno
import fcntl
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.core.errors import RUN_DIR, Absent, RunConflict, StoreError, UsageError, other_job
from pipeline.storage.objects import ObjectStorage
from pipeline.storage.storage import Storage

MARKER = "driver.json"
_SETTLE_SECONDS = 3.0
_SHOWN_CHARS = 60
_NAME = ".lock"
_NOT_SUPPORTED = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})


@contextmanager
def hold_lock(storage: Storage, *, lock: bool) -> Iterator[bool]:
    """Become the only driver of the run directory if `lock` is set. Yields whether no other driver is possible.

    Another driver is possible without `lock`, and where the store lets the first commit win: a second driver then repeats the
    work of the first and adds nothing. Raises RunConflict, UsageError, and StoreError for a directory that is not writable or
    in which the first commit does not win.
    """
    if not lock:
        yield False
    elif isinstance(storage, ObjectStorage):
        if storage.conditional:
            yield False
        else:
            with driver_marker(storage):
                yield True
    else:
        with run_lock(Path(storage.run_dir)):
            _refuse_overwriting(storage)
            yield True


def _refuse_overwriting(storage: Storage) -> None:
    probe = f".probe-{secrets.token_hex(6)}"
    try:
        if not storage.create(probe, b"first") or storage.create(probe, b"second"):
            raise StoreError(
                f"the file system of {storage.run_dir} lets two files have the same name: choose a run_dir on "
                "another file system"
            )
    finally:
        storage.remove(probe)


@contextmanager
def run_lock(run_dir: Path) -> Iterator[None]:
    """Hold the directory's lock, which the kernel releases when this process ends in any way.

    Raises RunConflict when another driver holds it, UsageError when `run_dir` is a file, StoreError when it cannot be created.
    """
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        file = (run_dir / _NAME).open("wb")
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(RUN_DIR, f"={run_dir} is a file or is inside a file: choose another ", RUN_DIR) from error
    except OSError as error:
        raise StoreError(
            f"{run_dir} cannot be used as ", RUN_DIR, f": {error.strerror or error}; choose another"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise other_job(str(run_dir)) from error
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
            raise StoreError(
                f"the file system of {run_dir} does not support locks: make sure that only one job works on it, and set "
                "run.lock=false (lock=false for relabel, regrade and audit)"
            ) from error
        yield


@contextmanager
def driver_marker(storage: Storage, settle_seconds: float = _SETTLE_SECONDS) -> Iterator[None]:
    """Become the driver that the marker names. Raises RunConflict where it names another driver, StoreError."""
    if resolved := _marker(storage):
        raise _conflict(storage, resolved)
    mine = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "id": secrets.token_hex(8)}).encode()
    try:
        storage.replace(MARKER, mine)
        time.sleep(settle_seconds)
        if (resolved := _marker(storage)) != mine:
            raise _conflict(storage, resolved)
        yield
    finally:
        # If the marker cannot be removed, the next start reports it. This start reports the error that ended it.
        with suppress(StoreError):
            if _marker(storage) == mine:
                storage.remove(MARKER)


def _marker(storage: Storage) -> bytes:
    try:
        return storage.read(MARKER)
    except Absent:
        return b""


def _conflict(storage: Storage, marker: bytes) -> RunConflict:
    folder = storage.run_dir
    if not marker:
        return RunConflict(f"another job started on {folder} at the same moment: if that was not intended, start again")
    return RunConflict(
        f"another job works on {folder}, according to its {MARKER}: {_owner(marker)}. Wait for it or choose another ",
        RUN_DIR,
        f"; if that job is dead, delete {folder}/{MARKER} and start again",
    )


def _owner(marker: bytes) -> str:
    try:
        fields = json.loads(marker)
        host, pid = str(fields["host"]), int(fields["pid"])
    except (ValueError, KeyError, TypeError):
        return "its owner is unknown"
    return f"process {pid} on {host[:_SHOWN_CHARS]!r}"
