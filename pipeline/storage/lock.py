"""One driver per run directory. The lock saves money; results are right without it, because the first commit wins."""

import errno
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.core.errors import RunConflict, StoreError, UsageError

_NAME = ".lock"
_NOT_SUPPORTED = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})


@contextmanager
def run_lock(run_dir: Path) -> Iterator[None]:
    """Hold the directory's lock, which the kernel frees when this process ends, however it ends.

    Raises RunConflict when another driver holds it, UsageError when the name is a file's, StoreError when it cannot be made.
    """
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        file = (run_dir / _NAME).open("wb")
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"run_dir={run_dir} is a file or lies below one: choose another run_dir") from error
    except OSError as error:
        raise StoreError(f"{run_dir} cannot be used as run_dir: {error.strerror or error}; choose another") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunConflict(f"another job works on {run_dir}: wait for it, or choose another run_dir") from error
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
            raise StoreError(
                f"the file system of {run_dir} has no locks: see to it that one job works on it, and set run.lock=false "
                "(of relabel, regrade and audit: lock=false)"
            ) from error
        yield
