"""What a library prints past Python: caught at the level of file descriptors, children included."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path


@contextlib.contextmanager
def captured_output(descriptors: Sequence[int] = (1, 2)) -> Iterator[Path]:
    """Send these descriptors of this process, and of children it starts meanwhile, to the file that is yielded.

    The file is gone behind the block, so read it inside.
    """
    _flush()
    saved = {descriptor: os.dup(descriptor) for descriptor in descriptors}
    with tempfile.NamedTemporaryFile(prefix="stepvalue-output-", suffix=".log") as log:
        for descriptor in descriptors:
            os.dup2(log.fileno(), descriptor)
        try:
            yield Path(log.name)
        finally:
            _flush()
            for descriptor, copy in saved.items():
                os.dup2(copy, descriptor)
                os.close(copy)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
