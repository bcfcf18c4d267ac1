"""A run directory in an object store, reached through fsspec: `s3://bucket/prefix`, `gs://bucket/prefix`.

An object appears whole or not at all, and is durable once the store has accepted it. For the first commit to win, the store
must refuse a put when the name is taken. The clients that send such conditional puts are listed here, and each store is probed
first, because some S3-compatible stores ignore the condition. In other stores a name is looked up before it is written, which
is correct for one writer but not for several. Not covered: stores of fsspec that show a file while it is being written.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from pipeline.core.errors import RUN_DIR, Absent, StepvalueError, StoreError, Unreachable, UsageError, first_line
from pipeline.storage.storage import PASSING_NAME, Storage

SCHEME_END = "://"
AT_ONCE = 16
"""Concurrent reads from a store."""
# s3fs 2026.9 sends `If-None-Match: *`, gcsfs 2026.10 `ifGenerationMatch=0`, with the put or the end of a multipart upload.
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
_OPTIONS: dict[str, dict[str, object]] = {
    # One request per read. With more than one at a time, s3fs requests the size first.
    "s3": {"use_listings_cache": False, "max_concurrency": 1},
    "gcs": {"use_listings_cache": False},
}
_WAITS_AFTER_CONFLICT = (0.1, 0.4, 1.6)  # seconds; a store reports a conflict while the name is being deleted
_TAKEN = 412
_CONFLICT = 409
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


class ObjectStorage:
    """See `Storage`. `files`: a file system of fsspec. `root`: its path of the run directory. `run_dir`: the user's path.

    `sends_condition`: whether the client sends conditional puts, which succeed only if the name is free.
    """

    def __init__(self, files: Any, root: str, run_dir: str, *, sends_condition: bool) -> None:
        self._files = files
        self._root = root
        self._run_dir = run_dir
        self._sends_condition = sends_condition

    @property
    def run_dir(self) -> str:
        return self._run_dir

    @cached_property
    def conditional(self) -> bool:
        """Whether the store refuses to create a name that is taken, even for concurrent writers. Probed on first use."""
        if not self._sends_condition:
            return False
        probe = f".probe-{secrets.token_hex(6)}"
        with self._blame(probe, "written"):
            self._put_if_free(self._path(probe), b"first")
            try:
                return not self._put_if_free(self._path(probe), b"second")
            finally:
                self._files.rm_file(self._path(probe))

    def create(self, name: str, data: bytes) -> bool:
        path = self._path(name)
        with self._blame(name, "written"):
            if not self.conditional and self._there(path):
                return False
            if not self._put_if_free(path, data):
                return False
            if self._files.cat_file(path) != data:
                raise StoreError(
                    f"{self._run_dir}/{name} reads back differently from what was written: check the store"
                )
            return True

    def replace(self, name: str, data: bytes, *, private: bool = False) -> None:
        with self._blame(name, "written"):
            self._files.pipe_file(self._path(name), data)

    def read(self, name: str) -> bytes:
        with self._blame(name, "read"):
            try:
                return bytes(self._files.cat_file(self._path(name)))
            except FileNotFoundError as error:
                raise Absent(f"{self._run_dir}/{name} is missing") from error

    def names(self, folder: str) -> list[str]:
        return [name for name in self._listed(folder) if not name.rpartition("/")[2].startswith(".")]

    def unfinished_files(self, folder: str) -> list[str]:
        return [name for name in self._listed(folder) if PASSING_NAME.fullmatch(name.rpartition("/")[2])]

    def move(self, name: str, new_name: str) -> None:
        with self._blame(new_name, "written"):
            try:
                self._files.cp_file(self._path(name), self._path(new_name))
            except FileNotFoundError as error:
                raise Absent(f"{self._run_dir}/{name} is missing") from error
            self._files.rm_file(self._path(name))

    def remove(self, name: str) -> None:
        with self._blame(name, "removed"):
            try:
                self._files.rm_file(self._path(name))
            except FileNotFoundError:
                return

    def _path(self, name: str) -> str:
        if not _is_plain(name):
            raise StoreError(
                f"{self._run_dir} cannot contain {name!r}: a name consists of parts joined by /, and no part is .."
            )
        return f"{self._root}/{name}"

    def _listed(self, folder: str) -> list[str]:
        path = self._path(folder) if folder else self._root
        with self._blame(folder, "listed"):
            self._files.invalidate_cache()
            try:
                found = self._files.ls(path, detail=True)
            except FileNotFoundError:
                return []
        entries = [each["name"].rstrip("/") for each in found if not folder or each["type"] == "file"]
        # Web consoles create an object with the name of a folder, which is not a file in it.
        inside = [name for name in entries if name.startswith(f"{path}/")]
        return sorted({name.removeprefix(f"{self._root}/") for name in inside})

    def _there(self, path: str) -> bool:
        self._files.invalidate_cache()
        try:
            self._files.info(path)
        except FileNotFoundError:
            return False
        return True

    def _put_if_free(self, path: str, data: bytes) -> bool:
        """False when the name is taken, perhaps by this put itself, if its answer was lost and the client retried."""
        for wait in (*_WAITS_AFTER_CONFLICT, None):
            try:
                self._files.pipe_file(path, data, mode="create")
            except Exception as error:
                status = _http_status(error)
                # Not every store names the failed condition, and s3fs then raises a general OSError.
                if isinstance(error, FileExistsError) or status == _TAKEN:
                    return False
                if status != _CONFLICT or wait is None:
                    raise
                time.sleep(wait)
            else:
                return True
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def _blame(self, name: str, verb: str) -> Iterator[None]:
        try:
            yield
        except StepvalueError:
            raise
        except Exception as error:  # each client has its own errors, few of them OSError
            raise Unreachable(
                f"{self._run_dir}/{name} cannot be {verb}: {first_line(error)}; check that the bucket exists and that the "
                "credentials in the environment permit listing, reading, writing and deleting, then start again"
            ) from error


def object_storage(url: str) -> ObjectStorage:
    """The run directory that a URL names. Raises UsageError where the URL is invalid or its client is not installed."""
    scheme, _, path = url.partition(SCHEME_END)
    path = path.rstrip("/")
    if not _is_plain(path) or set(path) & set("?#@") or "::" in url:
        raise UsageError(
            RUN_DIR, f"={url} is not a path in a bucket: write SCHEME://BUCKET/NAME, without .. ? # @ or ::"
        )
    try:
        from fsspec.core import url_to_fs

        options = _OPTIONS.get(_EXTRAS.get(scheme, ""), {})
        files, root = url_to_fs(f"{scheme}{SCHEME_END}{path}", **options)
    except ImportError as error:
        raise UsageError(RUN_DIR, f"={url} needs a package that is not installed: {_remedy(scheme, error)}") from error
    except ValueError as error:
        raise UsageError(
            RUN_DIR, f"={url} is not a valid URL: {first_line(error)}; use a folder, s3:// or gs://"
        ) from error
    except Exception as error:  # each client raises its own error when it finds no credentials
        raise Unreachable(
            f"{url} cannot be reached: {first_line(error)}; check the address, and the credentials in the environment"
        ) from error
    return ObjectStorage(files, root, f"{scheme}{SCHEME_END}{path}", sends_condition=scheme in _EXTRAS)


def each(storage: Storage, read: Callable[[_Item], _Made], items: Iterable[_Item]) -> Iterator[_Made]:
    """The results of `read` for each item, in order. Items in an object store are read concurrently.

    Raises what `read` raises.
    """
    if not isinstance(storage, ObjectStorage):
        yield from map(read, items)
        return
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="read") as pool:
        yield from pool.map(read, items)


def _remedy(scheme: str, error: ImportError) -> str:
    extra = _EXTRAS.get(scheme)
    return f"pip install 'stepvalue[{extra}]'" if extra else first_line(error)


def _is_plain(name: str) -> bool:
    return not set(name.split("/")) & {"", ".", ".."}


def _http_status(error: Exception) -> int | None:
    """The HTTP status of a botocore error, which s3fs sets as the cause of its own error."""
    response = getattr(error.__cause__ or error, "response", None)
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(response, dict) else None
    return status if isinstance(status, int) else None
