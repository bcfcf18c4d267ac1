"""What a person sees of a run while it works: one panel in a terminal, plain lines in a log.

The panel is no wider than what it says, so that a terminal that gets narrower rarely has to break its lines, and is drawn anew
once a second. What others print, warnings too, goes above it.
"""

import sys
import time
from types import TracebackType

from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pipeline.core.pace import Pace, pace
from pipeline.core.progress import Status
from pipeline.core.words import duration, facts_of, line_of, percent, printable
from pipeline.storage.course import Course

PANEL_WIDTH = 76
"""With its frame; narrower where the terminal is."""
BAR = 40
REFRESHES_PER_SECOND = 1.0


class LiveView:
    """A watcher of a run; see the module. `price`: of a device for an hour, None where it is not known.

    Between `__enter__` and `__exit__` standard error is the panel's too, where both are one terminal.
    """

    def __init__(self, console: Console, price: float | None = None) -> None:
        self._console = console
        self._price = price
        self._stage = ""
        self._began: dict[str, float] = {}
        self._start = time.monotonic()
        self._course = Course()
        self._status: Status | None = None
        self._live: Live | None = None
        if console.is_terminal and not console.is_dumb_terminal:
            self._live = Live(
                console=console,
                get_renderable=self._drawn,
                refresh_per_second=REFRESHES_PER_SECOND,
                transient=True,
                redirect_stderr=sys.stderr.isatty(),
            )

    def __enter__(self) -> "LiveView":
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def __call__(self, status: Status) -> None:
        now = time.monotonic()
        changed, self._stage = status.stage != self._stage, status.stage
        # A stage that is taken up again goes on.
        self._began.setdefault(status.stage, now)
        self._course.take(status, now - self._start)
        self._status = status
        if self._live and changed:
            self._live.refresh()
        elif self._live is None and (changed or status.rollouts or status.load.running or status.load.waiting):
            self._console.print(Text(line_of(status, self._pace(), self._seconds(), self._price)), soft_wrap=True)

    def _pace(self) -> Pace:
        return pace(self._course.samples, self._status.rollouts_expected if self._status else 0)

    def _seconds(self) -> float:
        return time.monotonic() - self._began[self._stage]

    def _drawn(self) -> RenderableType:
        if self._status is None:
            return Text()
        return panel(self._status, self._pace(), self._seconds(), self._price, width=self._console.width)


def panel(status: Status, pace: Pace, seconds: float, price: float | None, *, width: int) -> RenderableType:
    """The status as a panel; `seconds` is how long its stage has lasted, `width` that of the terminal."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, fact in facts_of(status, pace, price):
        table.add_row(name, Text(fact))
    if status.rollouts_expected:
        table.add_row("done", Text(_bar(status.rollouts / status.rollouts_expected, cells=min(BAR, width // 3))))
    outer = min(PANEL_WIDTH, max(width - 1, 1))
    title = Text(f"{printable(status.stage)} {duration(seconds)}")
    # A panel grows with its title.
    title.truncate(max(outer - 6, 1), overflow="ellipsis")
    return Panel(table, title=title, title_align="left", width=outer, padding=(0, 1))


def _bar(share: float, *, cells: int) -> str:
    full = round(min(1.0, share) * cells)
    return f"{'█' * full}{'·' * (cells - full)} {percent(share)}"
