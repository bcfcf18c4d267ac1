"""A disk with a page cache, on which power cuts, errors and deaths of processes can be played.

What a process sees is the cache. A file's content is durable once it was synced; a name (made, changed or removed) once its
folder was. After a power cut each content that was not is kept, torn, zeroed or gone, and each change of a name that was not
is kept or gone, independently of all others: a rename between folders counts as two changes.
"""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Protocol

from pipeline.storage.disk import OsDisk


class Killed(BaseException):
    """The process is dead. No handler of ordinary errors sees it, as none would run in a process that was killed."""


class Strike(Enum):
    """What befalls an effect, in its place but for `EIO_AFTER`. A failed write leaves a part of the content behind; `LIE` goes
    unnoticed: the disk keeps other bytes than it was given."""

    EIO = "eio"
    EIO_AFTER = "eio, though it was done"
    ENOSPC = "enospc"
    KILL = "kill"
    POWER_CUT = "power cut"
    LIE = "lie"


@dataclass(slots=True, eq=False)
class _File:
    content: bytes
    synced: bool = False


_Change = tuple[tuple[str, _File | None], ...]
"""Names of one folder and what they come to stand for, all at once."""


@dataclass(slots=True)
class _Folder:
    names: dict[str, _File] = field(default_factory=dict)
    durable: dict[str, _File] = field(default_factory=dict)
    unsynced: list[_Change] = field(default_factory=list)

    def change(self, *change: tuple[str, _File | None]) -> None:
        _apply(change, self.names)
        self.unsynced.append(change)

    def sync(self) -> None:
        for change in self.unsynced:
            _apply(change, self.durable)
        self.unsynced.clear()


class FakeDisk(OsDisk):
    """The medium and its cache; see the module. `write` leaves the content unsynced."""

    def __init__(self) -> None:
        self._folders: dict[str, _Folder] = {}
        self.on_sync: Callable[[str], None] = lambda folder: None

    def write(self, path: str, data: bytes, mode: int = 0o666) -> None:
        folder, name = self._at(path)
        if name in folder.names:
            raise _os_error(errno.EEXIST, path)
        folder.change((name, _File(data)))

    def sync(self, path: str) -> None:
        self._file(path).synced = True

    def link(self, path: str, new_path: str) -> None:
        file = self._file(path)
        folder, name = self._at(new_path)
        if name in folder.names:
            raise _os_error(errno.EEXIST, new_path)
        folder.change((name, file))

    def rename(self, path: str, new_path: str) -> None:
        file = self._file(path)
        (old_folder, old_name), (folder, name) = self._at(path), self._at(new_path)
        if old_folder is folder:
            folder.change((old_name, None), (name, file))
        else:
            folder.change((name, file))
            old_folder.change((old_name, None))

    def remove(self, path: str) -> None:
        self._file(path)
        folder, name = self._at(path)
        folder.change((name, None))

    def sync_folder(self, path: str) -> None:
        self._folder(path).sync()
        self.on_sync(path)

    def make_folder(self, path: str) -> None:
        while path and path not in self._folders:
            self._folders[path] = _Folder()
            path = path.rpartition("/")[0]

    def read(self, path: str) -> bytes:
        return self._file(path).content

    def names(self, folder: str) -> list[str]:
        below = [path.rpartition("/") for path in self._folders]
        return [*self._folder(folder).names, *(name for above, _, name in below if above == folder)]

    def files(self) -> list[str]:
        """Paths of all files but temporary ones, in the order they came to be."""
        return [
            f"{path}/{name}"
            for path, folder in self._folders.items()
            for name in folder.names
            if not name.startswith(".")
        ]

    def power_cut(self, rng: Random) -> None:
        """Forget what was not durable, or not; see the module."""
        for folder in self._folders.values():
            for change in folder.unsynced:
                if rng.random() < 0.5:
                    _apply(change, folder.durable)
            folder.unsynced.clear()
            folder.names = dict(folder.durable)
        for file in {id(file): file for folder in self._folders.values() for file in folder.names.values()}.values():
            if not file.synced:
                file.content = rng.choice([file.content, torn(file.content, rng), bytes(len(file.content)), b""])
                file.synced = True

    def damage(self, path: str, content: bytes | None) -> None:
        """Silently put other bytes in the place of a file's; None: lose it."""
        folder, name = self._at(path)
        if content is None:
            del folder.names[name]
            folder.durable.pop(name, None)
        else:
            folder.names[name] = folder.durable[name] = _File(content, synced=True)

    def copy(self) -> "FakeDisk":
        """A disk of its own on which everything here is durable."""
        twin = FakeDisk()
        for path, folder in self._folders.items():
            files = {name: _File(file.content, synced=True) for name, file in folder.names.items()}
            twin._folders[path] = _Folder(names=dict(files), durable=files)
        return twin

    def _at(self, path: str) -> tuple[_Folder, str]:
        folder, _, name = path.rpartition("/")
        return self._folder(folder), name

    def _folder(self, path: str) -> _Folder:
        if path not in self._folders:
            raise _os_error(errno.ENOENT, path)
        return self._folders[path]

    def _file(self, path: str) -> _File:
        folder, name = self._at(path)
        if name not in folder.names:
            raise _os_error(errno.ENOENT, path)
        return folder.names[name]


class Gate(Protocol):
    """What an effect of a process passes through on its way to the disk."""

    rng: Random

    def enter(self, verb: str, path: str) -> Strike | None:
        """Wait for one's turn; the effect is then done or struck. Raises Killed when the process is dead."""
        ...

    def die(self, strike: Strike) -> None:
        """Raises Killed, after the process or the whole machine has died."""
        ...


class ProcessDisk(OsDisk):
    """The disk as one process sees it."""

    def __init__(self, disk: FakeDisk, gate: Gate) -> None:
        self._disk = disk
        self._gate = gate

    def write(self, path: str, data: bytes, mode: int = 0o666) -> None:
        strike = self._gate.enter("write", path)
        if strike is Strike.LIE:
            data = flipped(data, self._gate.rng)
        elif strike is not None:
            self._disk.write(path, torn(data, self._gate.rng))
            self._suffer(strike, path)
        self._disk.write(path, data)
        for _ in self._struck("fsync", path):
            self._disk.sync(path)

    def link(self, path: str, new_path: str) -> None:
        for _ in self._struck("link", new_path):
            self._disk.link(path, new_path)

    def rename(self, path: str, new_path: str) -> None:
        for _ in self._struck("rename", new_path):
            self._disk.rename(path, new_path)

    def remove(self, path: str) -> None:
        for _ in self._struck("remove", path):
            self._disk.remove(path)

    def sync_folder(self, path: str) -> None:
        for _ in self._struck("sync_folder", path):
            self._disk.sync_folder(path)

    def make_folder(self, path: str) -> None:
        for _ in self._struck("make_folder", path):
            self._disk.make_folder(path)

    def read(self, path: str) -> bytes:
        strike = self._gate.enter("read", path)
        if strike is not None:
            self._suffer(strike, path)
        return self._disk.read(path)

    def names(self, folder: str) -> list[str]:
        strike = self._gate.enter("names", folder)
        if strike is not None:
            self._suffer(strike, folder)
        return self._disk.names(folder)

    def _struck(self, verb: str, path: str) -> Iterator[None]:
        """Yields where the effect takes place, and suffers the strike before or behind it."""
        strike = self._gate.enter(verb, path)
        if strike is not None and strike is not Strike.EIO_AFTER:
            self._suffer(strike, path)
        yield
        if strike is not None:
            self._suffer(strike, path)

    def _suffer(self, strike: Strike, path: str) -> None:
        match strike:
            case Strike.EIO | Strike.EIO_AFTER:
                raise _os_error(errno.EIO, path)
            case Strike.ENOSPC:
                raise _os_error(errno.ENOSPC, path)
            case Strike.KILL | Strike.POWER_CUT:
                self._gate.die(strike)
            case Strike.LIE:
                return


def torn(data: bytes, rng: Random) -> bytes:
    return data[: int(len(data) * rng.random())]


def flipped(data: bytes, rng: Random) -> bytes:
    """One bit is another."""
    at = int(len(data) * rng.random())
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _apply(change: _Change, names: dict[str, _File]) -> None:
    for name, file in change:
        if file is None:
            names.pop(name, None)
        else:
            names[name] = file


def _os_error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
