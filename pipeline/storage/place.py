"""Where a run directory lies, a folder or a bucket of an object store, and who may work on it."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.core.errors import StoreError, UsageError
from pipeline.storage.disk import HastyDisk
from pipeline.storage.local import LocalStorage
from pipeline.storage.lock import run_lock
from pipeline.storage.marker import marked
from pipeline.storage.objects import SCHEME_END, ObjectStorage, object_storage
from pipeline.storage.storage import Storage

_FOLDER_SCHEME = "file://"
_FOLDER_URL = "file:///"


def storage_at(run_dir: str) -> Storage:
    """The storage that `run_dir` names, a path or a URL.

    Raises UsageError for a URL that is not understood or needs a package that is not there, Unreachable.
    """
    if run_dir.startswith(_FOLDER_SCHEME) and not run_dir.startswith(_FOLDER_URL):
        raise UsageError(f"run_dir={run_dir} names no folder: write {_FOLDER_URL}PATH, or the path alone")
    if SCHEME_END in run_dir and not run_dir.startswith(_FOLDER_URL):
        return object_storage(run_dir)
    return LocalStorage(folder_at(run_dir))


def last_part(place: str) -> str:
    """What a run directory is called in its folder or bucket."""
    return place.rstrip("/").rpartition("/")[2]


def hasty(storage: Storage) -> Storage:
    """The same place for what is only told: a run works without it, and does not wait for it."""
    return LocalStorage(Path(storage.place), HastyDisk()) if isinstance(storage, LocalStorage) else storage


def folder_at(run_dir: str) -> Path:
    """The folder that `run_dir` names; for an object store's URL a path at which there is nothing."""
    return Path(run_dir.removeprefix(_FOLDER_URL[:-1])).expanduser().resolve()


@contextmanager
def held(storage: Storage, *, lock: bool) -> Iterator[bool]:
    """Be the one driver that works on the run directory, where `lock` asks for it; whether there can be no other one.

    There can be where the store lets the first commit win: a second driver then does in vain what the first one does. Raises
    RunConflict, UsageError, and StoreError for a place that cannot be written or in which no commit could win.
    """
    if not lock:
        yield False
    elif isinstance(storage, ObjectStorage):
        if storage.conditional:
            yield False
        else:
            with marked(storage):
                yield True
    else:
        with run_lock(Path(storage.place)):
            _refuse_overwriting(storage)
            yield True


def _refuse_overwriting(storage: Storage) -> None:
    probe = f".probe-{secrets.token_hex(6)}"
    try:
        if not storage.create(probe, b"first") or storage.create(probe, b"second"):
            raise StoreError(
                f"the file system of {storage.place} gives one name to two files: choose a run_dir on another"
            )
    finally:
        storage.remove(probe)
