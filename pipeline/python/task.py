"""What the process that works for a Python call is asked to do, and how its run has ended."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.core import errors
from pipeline.core.errors import StepvalueError
from pipeline.core.progress import Summary
from pipeline.storage.run_record import LABEL

if TYPE_CHECKING:
    from pipeline.runtime.objects import Packed


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """`command`: `label`, `grow`, `judge`, `check` or `search`. `overrides`: its settings. `objects`: those that the call gave;
    None without any."""

    overrides: Sequence[str]
    objects: "Packed | None" = None
    command: str = LABEL

    def offered(self) -> AbstractContextManager[None]:
        """The registries of this process resolve the names of the objects within the context. Raises UsageError."""
        if self.objects is None:
            return nullcontext()
        from pipeline.runtime.objects import offered

        return offered(self.objects.unpacked()[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`summary` of a run of `label`, `grow`, `judge`, `check` or `search` that is done; else the name of the `error`, empty
    for one that is none of ours, and its message."""

    summary: Summary | None = None
    error: str = ""
    message: str = ""

    def result(self) -> Summary:
        """The summary. Raises the error, as the type of `pipeline.core.errors` that it was."""
        if self.summary is not None:
            return self.summary
        kind = getattr(errors, self.error, None) if self.error else None
        if kind is None:
            raise StepvalueError(
                f"the process that works for this call failed; its committed work is kept:\n{self.message}"
            )
        raise kind(self.message)
