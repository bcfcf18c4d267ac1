"""An output file of a command that appears under its name when it is whole, and survives a power cut then."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pipeline.store.disk import OsDisk, blamed


@contextlib.contextmanager
def replaced_at_end(path: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends; where the block raises, nothing of it is left.

    Raises StoreError with the remedy where the file cannot be made or published; an OSError of the block stays one.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    with blamed(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = temporary.open("xb")
    try:
        yield file
        with blamed(path):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            temporary.replace(path)
            OsDisk().sync_folder(str(path.parent))
    finally:
        with contextlib.suppress(OSError):
            file.close()
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
