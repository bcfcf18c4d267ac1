"""An output file or folder of a command that appears under its name when it is whole, and survives a power cut then."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from pipeline.core.errors import UsageError
from pipeline.storage.disk import OsDisk, os_errors

_HEAD_BYTES = 4096


def check_output_file(key: str, path: Path) -> None:
    """Raise UsageError for a file that cannot be made where the setting `key` wants it: a folder, or nothing to put it in."""
    if path.is_dir():
        raise UsageError(f"{key}={path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"{key}={path}: there is no folder {path.parent}; make it, or correct the name")


def refuse_foreign(key: str, path: Path, mark: str, kind: str) -> None:
    """Raise UsageError where the setting `key` names a file that is there and is no `kind` of ours, which has `mark` near its
    beginning."""
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise UsageError(f"{key}={path} cannot be read: {error.strerror or error}") from error
    if mark.encode() not in head:
        raise UsageError(f"{key}={path} is there, and no {kind}: name another file, or remove it")


def refuse_overwriting(outputs: Mapping[str, Path], inputs: Iterable[Path]) -> None:
    """Raise UsageError where an output, a file or folder by its setting's name, is an input or another output, lies in one, or
    has one in it."""
    taken = [(path, "which is read") for path in inputs]
    for key, output in outputs.items():
        for path, what in taken:
            if _overlap(output.resolve(), path.resolve()):
                raise UsageError(f"{key}={output} would overwrite {path}, {what}: name another {key}")
        taken.append((output, f"which is {key}"))


def _overlap(one: Path, other: Path) -> bool:
    return one == other or one in other.parents or other in one.parents


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends; where the block raises, nothing of it is left.

    Raises StoreError with the remedy where the file cannot be made or published; an OSError of the block stays one.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    file: IO[bytes] | None = None
    try:
        # Made inside `try`: an interruption can come as soon as the file is there.
        with os_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = temporary.open("xb")
        yield file
        with os_errors(path):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            temporary.replace(path)
            OsDisk().sync_folder(str(path.parent))
    finally:
        with contextlib.suppress(OSError):
            if file is not None:
                file.close()
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A new folder that takes the place of `path` when the block ends; where the block raises, nothing of it is left.

    What was there before is removed when the new one has its name. Raises StoreError with the remedy where the folder cannot be
    made or published; an OSError of the block stays one.
    """
    mark = secrets.token_hex(6)
    temporary, before = (path.with_name(f".{path.name}.{mark}.{kind}") for kind in ("tmp", "old"))
    with os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
    try:
        yield temporary
        with os_errors(path):
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
