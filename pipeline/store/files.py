"""Durable files: what is published here is whole, and survives a power cut.

A file is written under a temporary name, flushed to the disk, and published by `link(2)`, which fails when the name exists:
the first writer wins and nothing that was published is ever replaced. Covers local and POSIX network file systems with a
working `link`; not object stores.
"""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pipeline.errors import StoreError


def sha256_of(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def publish_if_absent(path: Path, data: bytes | memoryview) -> bool:
    """Publish `data` under `path`; False, and no change, when that name is taken. Raises StoreError with the remedy."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with _blame(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            _sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return True


def replace(path: Path, data: bytes | memoryview) -> None:
    """Put `data` in the place of a file; a reader sees the old content or the new. Raises StoreError with the remedy."""
    with replaced_at_end(path) as file, _blame(path):
        file.write(data)


@contextlib.contextmanager
def replaced_at_end(path: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends; where the block raises, nothing of it is left.

    Raises StoreError with the remedy where the file cannot be made or published; an OSError of the block stays one.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    with _blame(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = temporary.open("xb")
    try:
        yield file
        with _blame(path):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            temporary.replace(path)
            _sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            file.close()
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _blame(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror or error}; free space or permit writing, then start again"
        ) from error


def read(path: Path) -> bytes:
    """The whole file. Raises StoreError when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
