"""An output folder of a command that appears under its name when all in it is whole, and survives a power cut then."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from pipeline.storage.disk import OsDisk, blamed


@contextlib.contextmanager
def folder_at_end(path: Path) -> Iterator[Path]:
    """A new folder that takes the place of `path` when the block ends; where the block raises, nothing of it is left.

    What was there before is removed when the new one has its name. Raises StoreError with the remedy where the folder cannot be
    made or published; an OSError of the block stays one.
    """
    mark = secrets.token_hex(6)
    temporary, before = (path.with_name(f".{path.name}.{mark}.{kind}") for kind in ("tmp", "old"))
    with blamed(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
    try:
        yield temporary
        with blamed(path):
            _flush(temporary)
            _take_place(temporary, path, before)
        shutil.rmtree(before, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _take_place(folder: Path, path: Path, before: Path) -> None:
    if path.exists():
        path.rename(before)
    try:
        folder.rename(path)
    except OSError:
        if before.exists():
            before.rename(path)
        raise
    OsDisk().sync_folder(str(path.parent))


def _flush(folder: Path) -> None:
    for file in folder.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    OsDisk().sync_folder(str(folder))
