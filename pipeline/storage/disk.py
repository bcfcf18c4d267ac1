"""The file system calls that `LocalStorage` uses. Tests replace them to simulate failures."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import IO

from pipeline.core.errors import StoreError
from pipeline.core.failpoints import failpoint

SHARED = 0o666
PRIVATE = 0o600


class OsDisk:
    """The file system of this machine. Each call raises OSError as the kernel does."""

    def write(self, path: str, data: bytes, mode: int = SHARED) -> None:
        """Create a file whose content is on disk on return. Its name may not be. A failed call may leave a partial file.

        `mode`: its permissions, less those that the umask of the process takes away.
        """
        # One descriptor for write and fsync: after a failed fsync, a second fsync on the file may report success.
        failpoint("disk.write")
        with _created(path, mode) as file:
            file.write(data)
            file.flush()
            failpoint("disk.sync")
            os.fsync(file.fileno())

    def link(self, path: str, new_path: str) -> None:
        """Give a file a second name. FileExistsError when the name is taken: one of several callers wins."""
        failpoint("disk.link")
        os.link(path, new_path)

    def rename(self, path: str, new_path: str) -> None:
        """Rename a file, replacing any file with the new name."""
        failpoint("disk.rename")
        os.rename(path, new_path)

    def remove(self, path: str) -> None:
        failpoint("disk.remove")
        os.unlink(path)

    def sync_folder(self, path: str) -> None:
        """All earlier creations, renames and removals of names in a folder are on disk on return."""
        failpoint("disk.sync_folder")
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents. They are on disk on return."""
        folder = Path(path)
        absent = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(absent):
            each.mkdir(exist_ok=True)
            self.sync_folder(str(each.parent))
        if not folder.is_dir():
            raise NotADirectoryError(20, "a file has the name of the folder", path)

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def names(self, folder: str) -> list[str]:
        """All names in a folder, in any order."""
        return os.listdir(folder)


class NonDurableDisk(OsDisk):
    """For files without durability: a file appears whole but may be lost in a crash. No call waits for the disk."""

    def write(self, path: str, data: bytes, mode: int = SHARED) -> None:
        with _created(path, mode) as file:
            file.write(data)

    def rename(self, path: str, new_path: str) -> None:
        os.rename(path, new_path)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def sync_folder(self, path: str) -> None:
        """Does nothing: the system writes the folder later."""


def _created(path: str, mode: int) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb")


@contextlib.contextmanager
def os_errors(path: PurePath) -> Iterator[None]:
    """Turn an OSError of the block into a StoreError that names the file and the remedy."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror or error}; free disk space or permit writing, then start again"
        ) from error
