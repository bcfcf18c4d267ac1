"""The process that holds mypy, seen from a verifier: started when first needed, and again after it has ended."""

import json
from functools import cache

from pipeline.core.errors import StepvalueError
from pipeline.graders.line_process import Process, end, read_line, start_module, write_line
from pipeline.graders.process_pool import ChildPool
from pipeline.verifiers.settings import TypesConfig

START_SECONDS = 120.0
GRACE_SECONDS = 30.0
_MODULE = "pipeline.verifiers.types.child"


class _Child:
    """One process of `types.child`."""

    def __init__(self) -> None:
        self._process: Process | None = None

    def ask(self, source: str, settings: TypesConfig) -> list[str] | None:
        """What mypy says of a program. None: it does not end within the limits, or its process was lost."""
        process = self._started()
        task = {"source": source, "seconds": settings.check_seconds, "memory_mib": settings.check_memory_mib}
        try:
            write_line(process, json.dumps(task).encode())
            reply = read_line(process, settings.check_seconds + GRACE_SECONDS)
        except (OSError, TimeoutError):
            reply = b""
        if not reply:
            self.kill()
            return None
        messages: list[str] | None = json.loads(reply)["messages"]
        return messages

    def kill(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            end(process)

    def _started(self) -> Process:
        if self._process is not None and self._process.poll() is not None:
            self.kill()
        if self._process is None:
            # A fixed seed of hashes: equal programs get equal answers.
            self._process = start_module(_MODULE, (), environment={"PYTHONHASHSEED": "0"})
            try:
                ready = read_line(self._process, START_SECONDS)
            except TimeoutError:
                ready = b""
            if not ready:
                self.kill()
                raise StepvalueError("the process that holds mypy does not start: is there memory for it (300 MiB)?")
        return self._process


@cache
def _pool() -> ChildPool[_Child]:
    """One process serves all verifiers of this one, because it keeps nothing of a program."""
    return ChildPool([_Child()], "this verifier")


def messages_of(source: str, settings: TypesConfig) -> list[str] | None:
    """What mypy says of a program. None: it does not end within the limits. Raises StepvalueError if it does not start."""
    with _pool().child() as child:
        return child.ask(source, settings)
