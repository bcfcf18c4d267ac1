"""How a run that another process made has ended."""

from dataclasses import dataclass

from pipeline.core import errors
from pipeline.core.errors import StepvalueError
from pipeline.core.progress import ChainRun, Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`summary` of a run of `label`, `grow`, `judge`, `check` or `search` that is done; else the name of the `error`, empty
    for one that is none of ours, and its message."""

    summary: Summary | ChainRun | None = None
    error: str = ""
    message: str = ""

    def result(self) -> Summary | ChainRun:
        """The summary. Raises the error, as the type of `pipeline.core.errors` that it was."""
        if self.summary is not None:
            return self.summary
        kind = getattr(errors, self.error, None) if self.error else None
        if kind is None:
            raise StepvalueError(
                f"the process that works for this call failed; its committed work is kept:\n{self.message}"
            )
        raise kind(self.message)
