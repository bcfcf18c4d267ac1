"""Shows the progress of a run where the caller sees it: in a terminal, in a log, or below a cell of a notebook."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from typing import Any

from pipeline.core.errors import BudgetSpent, Interrupted, PolicyError, StepvalueError, UsageError
from pipeline.core.formatting import format_count
from pipeline.core.progress import Status

Watch = Callable[[Status], None]
_NOTEBOOK_SHELL = "ZMQInteractiveShell"
_UPDATE_SECONDS = 0.5
DONE = "done"
STOPPED = "stopped; the same call continues it"
LIMITED = "stopped at its limit"
FAILED = "failed"


@contextmanager
def progress_view(*, shown: bool) -> Iterator[Watch]:
    """What to call with each status."""
    if not shown:
        yield lambda _status: None
    elif in_notebook():
        view = _Cell()
        try:
            yield view
        except BaseException as error:
            view.end(_ending(error, begun=view.begun))
            raise
        view.end(DONE)
    else:
        from pipeline.display.live import LiveView
        from pipeline.display.terminal import terminal

        with LiveView(terminal(stderr=True)) as live:
            yield live


def _ending(error: BaseException, *, begun: bool) -> str:
    """How a call has ended. `begun`: its run has units, so there is something to continue."""
    if isinstance(error, BudgetSpent):
        return LIMITED
    if isinstance(error, KeyboardInterrupt | Interrupted):
        return STOPPED
    wrong = isinstance(error, PolicyError) or getattr(error, "exit_code", None) == UsageError.exit_code
    return STOPPED if begun and isinstance(error, StepvalueError) and not wrong else FAILED


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == _NOTEBOOK_SHELL


class _Cell:
    """A bar and a line that are drawn again in their place, and say at the end how it ended."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._drawn = 0.0
        self._last = Status(stage="starting")
        self._handle = display(HTML(_bar(self._last)), display_id=True)

    def __call__(self, status: Status) -> None:
        changed = status.stage != self._last.stage
        self._last = status
        if changed or time.monotonic() - self._drawn >= _UPDATE_SECONDS:
            self._drawn = time.monotonic()
            self._handle.update(self._html(_bar(status)))

    @property
    def begun(self) -> bool:
        """Whether the run has been cut into units."""
        return self._last.units > 0

    def end(self, how: str) -> None:
        """Draw the last state."""
        self._handle.update(self._html(_bar(replace(self._last, stage=how), over=True)))


def _bar(status: Status, *, over: bool = False) -> str:
    """HTML in the colours of the notebook's theme. The bar moves while the number of rollouts is unknown."""
    expected = status.rollouts_expected
    rollouts = f"{status.rollouts:,} of {expected:,} rollouts" if expected else ""
    units = f"{status.units_done} of {format_count(status.units, 'unit')}" if status.units else ""
    words = ", ".join(each for each in (status.stage, units, rollouts) if each)
    known = f' max="{expected}" value="{min(status.rollouts, expected)}"' if expected else ' max="1" value="1"'
    place = known if expected or over else ""
    return f'<progress style="width:40%"{place}></progress> {escape(words)}'
