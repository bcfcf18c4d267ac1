"""Temporary folders that do not outlive a killed process for long: the next start removes what it left.

A process holds a lock on a file in its folder for as long as it lives, in whatever way it ends. A folder whose file nobody has
locked is left over. Folders without such a file are never touched.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OWNER = "owner.lock"


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder for this account alone, removed at the end. Those of killed processes with the same prefix are removed first.

    Raises OSError where none can be made."""
    remove_left_over(prefix, tempfile.gettempdir())
    with owned_folder(prefix, tempfile.gettempdir()) as folder:
        try:
            yield folder
        finally:
            remove(folder)


@contextmanager
def owned_folder(prefix: str, parent: str) -> Iterator[Path]:
    """A new folder for this account alone, which this process holds within the context. It stays afterwards.

    Raises OSError where none can be made."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        descriptor = os.open(folder / OWNER, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = True
        except BlockingIOError:
            locked = False
        except OSError:  # a file system without locks
            (folder / OWNER).unlink()
            break
        # Another start may have looked just before the lock was taken, and then removes the folder.
        if locked and (folder / OWNER).exists():
            break
        os.close(descriptor)
    try:
        yield folder
    finally:
        os.close(descriptor)


def keep(folder: Path) -> None:
    """Mark a folder that its process leaves on purpose."""
    with suppress(OSError):
        (folder / OWNER).write_text("kept\n")


def remove(folder: Path) -> None:
    """Remove an owned folder. What cannot be removed, or not before this process is killed, the next start removes."""
    with suppress(OSError):
        for each in os.scandir(folder):
            if each.is_dir(follow_symlinks=False):
                shutil.rmtree(each, ignore_errors=True)
            elif each.name != OWNER:  # it goes last: without it, nobody would remove the rest
                os.unlink(each)
        if set(os.listdir(folder)) <= {OWNER}:
            shutil.rmtree(folder)


def remove_left_over(prefix: str, parent: str, *, kept_seconds: float = 0) -> list[Path]:
    """Remove the folders of this account whose process is gone, `kept_seconds` after its end where it marked them to be kept.
    Returns their paths. Errors are not raised: the next start tries again."""
    removed = []
    for folder in sorted(Path(parent).glob(f"{prefix}*")):
        with suppress(OSError):
            if folder.lstat().st_uid != os.geteuid() or folder.is_symlink() or (held := _held(folder / OWNER)) is None:
                continue
            try:
                mark = os.fstat(held)
                if not mark.st_size or time.time() - mark.st_mtime >= kept_seconds:
                    remove(folder)
                    removed += [] if folder.exists() else [folder]
            finally:
                os.close(held)
    return removed


def _held(file: Path) -> int | None:
    """A descriptor that holds the lock of a file. None if another process holds it, or there is no such file."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
