"""The interface of a storage that holds a run directory. Names are relative to it, with parts joined by `/`."""

import hashlib
import re
from typing import Protocol

PASSING_NAME = re.compile(r"\..+\.[0-9a-f]{12}\.tmp|\.probe-[0-9a-f]{12}")
"""Names of temporary files and of probe files, which test how a store behaves."""


class Storage(Protocol):
    """Files that appear whole under their names.

    Every method raises StoreError, with the run_dir and the remedy, when it fails.
    """

    @property
    def run_dir(self) -> str:
        """The run directory as the user writes it."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Publish `data` under `name` if that name is free: whole or not at all, and durable when this returns.

        Returns False and changes nothing when the name is taken. Of several concurrent callers exactly one gets True.
        """
        ...

    def replace(self, name: str, data: bytes, *, private: bool = False) -> None:
        """Publish `data` under `name` in place of the old content. A reader sees either the old or the new content. A `private`
        file can be read by its owner alone, where the storage has owners of files."""
        ...

    def read(self, name: str) -> bytes:
        """The content of the file. Raises Absent when it does not exist."""
        ...

    def names(self, folder: str) -> list[str]:
        """Sorted names of the published files in a folder, with the folder. For `""`, the run directory, folders too."""
        ...

    def unfinished_files(self, folder: str) -> list[str]:
        """Temporary names in a folder. They belong to active writers or, if there is none, remain from a crash."""
        ...

    def move(self, name: str, new_name: str) -> None:
        """Rename a file, replacing any file with the new name. Raises Absent when the file does not exist."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file. A missing file is no error."""
        ...


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
