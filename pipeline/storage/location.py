"""The location of a run directory: a folder, or a bucket of an object store."""

from pathlib import Path

from pipeline.core.errors import RUN_DIR, UsageError
from pipeline.storage.disk import NonDurableDisk
from pipeline.storage.local import LocalStorage
from pipeline.storage.objects import SCHEME_END, object_storage
from pipeline.storage.storage import Storage

_FOLDER_SCHEME = "file://"
_FOLDER_URL = "file:///"


def storage_at(run_dir: str) -> Storage:
    """The storage that `run_dir` names, a path or a URL.

    Raises UsageError for a URL that is invalid or needs a package that is not installed, Unreachable.
    """
    if run_dir.startswith(_FOLDER_SCHEME) and not run_dir.startswith(_FOLDER_URL):
        raise UsageError(RUN_DIR, f"={run_dir} is not the URL of a folder: write {_FOLDER_URL}PATH, or the path alone")
    if is_bucket(run_dir):
        return object_storage(run_dir)
    return LocalStorage(folder_at(run_dir))


def is_bucket(run_dir: str) -> bool:
    """Whether a run directory lies in an object store."""
    return SCHEME_END in run_dir and not run_dir.startswith(_FOLDER_SCHEME)


def last_part(run_dir: str) -> str:
    """The name of a run directory in its folder or bucket."""
    return run_dir.rstrip("/").rpartition("/")[2]


def without_durability(storage: Storage) -> Storage:
    """The same storage without durability, for files that a run does not need and does not wait for."""
    return LocalStorage(Path(storage.run_dir), NonDurableDisk()) if isinstance(storage, LocalStorage) else storage


def folder_at(run_dir: str) -> Path:
    """The folder that `run_dir` names. For the URL of an object store, a path that does not exist."""
    return Path(run_dir.removeprefix(_FOLDER_URL[:-1])).expanduser().resolve()
