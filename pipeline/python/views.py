"""Shows the progress of a run where the caller sees it: in a terminal, in a log, or below a cell of a notebook."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from pipeline.core.progress import Status

Watch = Callable[[Status], None]
_NOTEBOOK_SHELL = "ZMQInteractiveShell"
_UPDATE_SECONDS = 0.5


@contextmanager
def progress_view(*, shown: bool) -> Iterator[Watch]:
    """What to call with each status."""
    if not shown:
        yield lambda _status: None
    elif in_notebook():
        view = _Cell()
        yield view
        view.end()
    else:
        from rich.console import Console

        from pipeline.analysis.report.terminal import LiveView

        with LiveView(Console(stderr=True, highlight=False)) as live:
            yield live


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == _NOTEBOOK_SHELL


class _Cell:
    """A bar and a line that are drawn again in their place."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._drawn = 0.0
        self._last: Status | None = None
        self._handle = display(HTML("starting"), display_id=True)

    def __call__(self, status: Status) -> None:
        changed = self._last is None or status.stage != self._last.stage
        self._last = status
        if changed or time.monotonic() - self._drawn >= _UPDATE_SECONDS:
            self._draw(status)

    def end(self) -> None:
        """Draw the last status."""
        if self._last is not None:
            self._draw(self._last)

    def _draw(self, status: Status) -> None:
        self._drawn = time.monotonic()
        self._handle.update(self._html(_bar(status)))


def _bar(status: Status) -> str:
    rollouts = f"{status.rollouts:,} of {status.rollouts_expected:,} rollouts" if status.rollouts_expected else ""
    units = f"{status.units_done} of {status.units} units" if status.units else ""
    words = ", ".join(each for each in (status.stage, units, rollouts) if each)
    return (
        f'<progress style="width:40%" max="{max(1, status.rollouts_expected)}" value="{status.rollouts}"></progress> '
        f"{escape(words)}"
    )
