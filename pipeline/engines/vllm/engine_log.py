"""The file that an engine and its processes write to for as long as they live.

vLLM's own exceptions do not contain the cause of a failed start or of a death; its processes print it.
"""

import contextlib
import logging
import os
import secrets
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

from pipeline.core.output import send_output

PATTERN = "engine-*.log"
CLOSED = b"stepvalue: the engine was closed, and no message names this file\n"
_LOGGER = "vllm"
_READ_BYTES = 2 * 1024 * 1024
"""The end of the file that is read. A traceback of every process of a large model fits into it."""


class EngineLog:
    """`folder`: where the file is kept when the engine has ended. None: a temporary file, which `close` deletes.

    Only this user can read the file: it may contain text of problems, and what servers answered.
    """

    def __init__(self, folder: Path | None) -> None:
        self.is_kept = folder is not None
        self.path = (folder or Path(tempfile.gettempdir())) / PATTERN.replace(
            "*", f"{os.getpid()}-{secrets.token_hex(4)}"
        )
        self._descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._since = 0
        self._is_named = False
        self._handler: logging.Handler | None = None

    def capture(self) -> AbstractContextManager[None]:
        """The output of this process goes to the file in the block, and that of processes started in the block always."""
        return send_output(self._descriptor)

    def take_logger(self) -> None:
        """Send what vLLM's logger says in this process to the file, also after `capture`."""
        logger = logging.getLogger(_LOGGER)
        self._handler = own = logging.FileHandler(self.path, encoding="utf-8")
        if logger.handlers:
            own.setFormatter(logger.handlers[0].formatter)
        logger.handlers[:] = [own]

    def named(self) -> Path:
        """The file's path for a message. Its readers want to find it."""
        self._is_named = True
        return self.path

    def mark(self) -> None:
        """`text` leaves out what was written before."""
        self._since = self.path.stat().st_size

    @property
    def text(self) -> str:
        """What was written since `mark`, at most its end. Empty if somebody has removed the file."""
        with contextlib.suppress(OSError), self.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(self._since, size - _READ_BYTES))
            return file.read().decode(errors="replace")
        return ""

    def close(self) -> None:
        """Safe to call twice."""
        if self._descriptor < 0:
            return
        if not self._is_named:
            os.write(self._descriptor, CLOSED)
        os.close(self._descriptor)
        self._descriptor = -1
        if self._handler is not None:
            logging.getLogger(_LOGGER).removeHandler(self._handler)
            self._handler.close()
        if not self.is_kept:
            self.path.unlink(missing_ok=True)


def holds_wanted_logs(folder: Path) -> bool:
    """Whether a folder holds the log of an engine that died, or that a message names."""
    for path in folder.rglob(PATTERN):
        with contextlib.suppress(OSError), path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - len(CLOSED)))
            if file.read() != CLOSED:
                return True
    return False
