"""What a run directory asks of the place it lies in. Names are relative to it, parts joined with `/`."""

import hashlib
import re
from typing import Protocol

PASSING_NAME = re.compile(r"\..+\.[0-9a-f]{12}\.tmp|\.probe-[0-9a-f]{12}")
"""Of a file that is on its way to its name, and of one that tries what a store does."""


class Storage(Protocol):
    """Files that are published whole, once, under names that we make.

    Every verb raises StoreError, with the place and the remedy, where it cannot do its work.
    """

    @property
    def place(self) -> str:
        """The run directory, as a user would name it."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Publish `data` under `name` if that name is free: whole or not at all, and durable when this returns.

        False, and no change, when the name is taken; of many callers at once exactly one gets True.
        """
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Publish `data` in the place of what `name` stands for; a reader sees the old content or the new."""
        ...

    def read(self, name: str) -> bytes:
        """The whole file. Raises Absent where there is none."""
        ...

    def names(self, folder: str) -> list[str]:
        """Names of what is published in a folder, sorted, each with its folder; in `""`, the run directory, folders too."""
        ...

    def unfinished(self, folder: str) -> list[str]:
        """Passing names in a folder: of writers at work, and where there is none, what a crash has left."""
        ...

    def move(self, name: str, new_name: str) -> None:
        """Give a file another name, whatever had it before. Raises Absent where there is no such file."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is removed."""
        ...


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
