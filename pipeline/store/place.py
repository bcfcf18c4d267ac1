"""Where a run directory lies: a folder, or a bucket of an object store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.store.local import LocalStorage
from pipeline.store.lock import run_lock
from pipeline.store.storage import Storage

_REMOTE = "://"


def storage_at(run_dir: str) -> Storage:
    """The storage that `run_dir` names. Raises UsageError for a kind of place that is not known."""
    if _REMOTE in run_dir:
        raise UsageError(f"run_dir={run_dir} is no folder: object stores are not supported, name a folder")
    return LocalStorage(Path(run_dir).expanduser().resolve())


@contextmanager
def held(storage: Storage, *, lock: bool) -> Iterator[None]:
    """Be the one job that works on the run directory, where `lock` asks for it. Raises RunConflict, UsageError, StoreError."""
    if lock:
        with run_lock(Path(storage.place)):
            yield
    else:
        yield
