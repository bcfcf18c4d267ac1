"""Output files and folders of commands. They appear under their names only when complete, and then survive a power cut."""

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
    """Raise UsageError where the path of the setting `key` is a folder, or its parent folder does not exist."""
    if path.is_dir():
        raise UsageError(f"{key}={path} is a folder: give the name of a file")
    if not path.parent.is_dir():
        raise UsageError(f"{key}={path}: the folder {path.parent} does not exist; create it, or correct the path")


def refuse_foreign(key: str, path: Path, mark: str, kind: str) -> None:
    """Raise UsageError where the setting `key` names an existing file that is not a `kind` of stepvalue. Such a file has `mark`
    near its beginning."""
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise UsageError(f"{key}={path} cannot be read: {error.strerror or error}") from error
    if mark.encode() not in head:
        raise UsageError(f"{key}={path} exists and is not a {kind}: choose another file, or remove it")


def refuse_overwriting(outputs: Mapping[str, Path], inputs: Iterable[Path]) -> None:
    """Raise UsageError where an output (setting -> file or folder) is an input or another output, is inside one, or contains
    one."""
    taken = [(path, "which is read") for path in inputs]
    for key, output in outputs.items():
        for path, what in taken:
            if _overlap(output.resolve(), path.resolve()):
                raise UsageError(f"{key}={output} would overwrite {path}, {what}: choose another {key}")
        taken.append((output, f"which is {key}"))


def _overlap(one: Path, other: Path) -> bool:
    return one == other or one in other.parents or other in one.parents


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A new file that replaces `path` when the block ends. If the block raises, the new file is removed.

    Raises StoreError with the remedy when the file cannot be created or published. An OSError of the block is passed on.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    file: IO[bytes] | None = None
    try:
        # Created inside `try`, because an interruption may come as soon as the file exists.
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
    """A new folder that replaces `path` when the block ends. If the block raises, the new folder is removed.

    The old folder is removed after the new one has its name. Raises StoreError with the remedy when the folder cannot be
    created or published. An OSError of the block is passed on.
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
