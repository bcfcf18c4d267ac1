"""A run directory on a local or POSIX network file system with a working `link`.

A file is written under a temporary name, flushed to disk, read back, and published by `link(2)`, which fails when the name
exists. So the first writer wins, and only `replace` and `move` replace a published file. The folder is flushed too, because
otherwise a power cut could remove the name.
"""

import contextlib
import errno
import secrets
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pipeline.core.errors import Absent, StoreError
from pipeline.storage.disk import PRIVATE, SHARED, OsDisk, os_errors
from pipeline.storage.storage import PASSING_NAME

_TEMPORARY = ".tmp"
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})


class LocalStorage:
    """See `Storage`."""

    def __init__(self, folder: Path, disk: OsDisk | None = None) -> None:
        self._folder = PurePosixPath(folder)
        self._disk = disk or OsDisk()

    @property
    def run_dir(self) -> str:
        return str(self._folder)

    def create(self, name: str, data: bytes) -> bool:
        path = self._folder / name
        with self._temporary(path, data) as temporary:
            try:
                self._disk.link(temporary, str(path))
                won = True
            except FileExistsError:
                won = False
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                raise StoreError(
                    f"the file system of {self.run_dir} has no hard links: choose a run_dir on another file system"
                ) from error
            # Also after a lost race: the caller relies on the winner's name, so it must be durable.
            self._disk.sync_folder(str(path.parent))
            return won

    def replace(self, name: str, data: bytes, *, private: bool = False) -> None:
        path = self._folder / name
        with self._temporary(path, data, private=private) as temporary:
            self._disk.rename(temporary, str(path))
            self._disk.sync_folder(str(path.parent))

    def read(self, name: str) -> bytes:
        path = self._folder / name
        try:
            return self._disk.read(str(path))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise Absent(f"{path} is missing") from error
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error

    def names(self, folder: str) -> list[str]:
        found = [name for name in self._listed(folder) if not name.startswith(".")]
        return sorted(f"{folder}/{name}" if folder else name for name in found)

    def unfinished_files(self, folder: str) -> list[str]:
        found = [name for name in self._listed(folder) if PASSING_NAME.fullmatch(name)]
        return sorted(f"{folder}/{name}" if folder else name for name in found)

    def move(self, name: str, new_name: str) -> None:
        path, new_path = self._folder / name, self._folder / new_name
        with os_errors(new_path):
            self._disk.make_folder(str(new_path.parent))
            try:
                self._disk.rename(str(path), str(new_path))
            except FileNotFoundError as error:
                raise Absent(f"{path} is missing") from error
            self._disk.sync_folder(str(new_path.parent))
            self._disk.sync_folder(str(path.parent))

    def remove(self, name: str) -> None:
        path = self._folder / name
        with os_errors(path), contextlib.suppress(FileNotFoundError):
            self._disk.remove(str(path))

    def _listed(self, folder: str) -> list[str]:
        path = self._folder / folder
        try:
            return self._disk.names(str(path))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StoreError(f"{path} cannot be listed: {error.strerror or error}") from error

    @contextlib.contextmanager
    def _temporary(self, path: PurePosixPath, data: bytes, *, private: bool = False) -> Iterator[str]:
        temporary = str(path.with_name(f".{path.name}.{secrets.token_hex(6)}{_TEMPORARY}"))
        try:
            with os_errors(path):
                self._disk.make_folder(str(path.parent))
                self._disk.write(temporary, data, PRIVATE if private else SHARED)
                if self._disk.read(temporary) != data:
                    raise StoreError(f"{path} reads back differently from what was written: check the disk")
                yield temporary
        finally:
            with contextlib.suppress(OSError):
                self._disk.remove(temporary)
