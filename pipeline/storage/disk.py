"""The few things asked of a file system: `LocalStorage` is written against them, so that each can be made to fail."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Protocol

from pipeline.core.errors import StoreError
from pipeline.core.failpoints import failpoint


class Disk(Protocol):
    """Verbs of a POSIX file system; each raises OSError as the kernel does."""

    def write(self, path: str, data: bytes) -> None:
        """A new file whose content is on the disk when this returns; its name need not be. A failed one may be left, torn."""
        ...

    def link(self, path: str, new_path: str) -> None:
        """A second name for a file. FileExistsError when that name is taken: of many callers one wins."""
        ...

    def rename(self, path: str, new_path: str) -> None:
        """Another name for a file, taken from whatever had it before."""
        ...

    def remove(self, path: str) -> None: ...

    def sync_folder(self, path: str) -> None:
        """Names made, changed and removed in a folder so far are on the disk when this returns."""
        ...

    def make_folder(self, path: str) -> None:
        """The folder and those above it, there and on the disk when this returns."""
        ...

    def read(self, path: str) -> bytes: ...

    def names(self, folder: str) -> list[str]:
        """All names in a folder, in no order."""
        ...


class OsDisk:
    """The machine's own file system."""

    def write(self, path: str, data: bytes) -> None:
        # One descriptor for both: after a failed fsync a second one on the same file may report success.
        failpoint("disk.write")
        with open(path, "xb") as file:
            file.write(data)
            file.flush()
            failpoint("disk.sync")
            os.fsync(file.fileno())

    def link(self, path: str, new_path: str) -> None:
        failpoint("disk.link")
        os.link(path, new_path)

    def rename(self, path: str, new_path: str) -> None:
        failpoint("disk.rename")
        os.rename(path, new_path)

    def remove(self, path: str) -> None:
        failpoint("disk.remove")
        os.unlink(path)

    def sync_folder(self, path: str) -> None:
        failpoint("disk.sync_folder")
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def make_folder(self, path: str) -> None:
        folder = Path(path)
        absent = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(absent):
            each.mkdir(exist_ok=True)
            self.sync_folder(str(each.parent))
        if not folder.is_dir():
            raise NotADirectoryError(20, "a file has the name of a folder", path)

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def names(self, folder: str) -> list[str]:
        return os.listdir(folder)


class HastyDisk(OsDisk):
    """For what is only told: whole where it appears, and perhaps lost with the machine. Nothing waits for the disk."""

    def write(self, path: str, data: bytes) -> None:
        with open(path, "xb") as file:
            file.write(data)

    def rename(self, path: str, new_path: str) -> None:
        os.rename(path, new_path)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def sync_folder(self, path: str) -> None:
        """It comes to be there when the system writes it."""


@contextlib.contextmanager
def os_errors(path: PurePath) -> Iterator[None]:
    """What the kernel refuses inside becomes a StoreError that names the file and the remedy."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror or error}; free space or permit writing, then start again"
        ) from error
