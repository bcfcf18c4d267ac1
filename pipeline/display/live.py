"""The progress of a run on a terminal: a live panel while it works, plain lines in a log.

The panel has at most `PANEL_WIDTH` columns, so that its lines rarely break when the terminal gets narrower. It is drawn once a
second. Other output, such as warnings, appears above it.

A log gets a line when the stage changes, one for each status with rollouts, and one a minute while nothing else happens, such
as while a large model is downloaded and loaded.
"""

import sys
import time

from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pipeline.core.formatting import format_duration, format_percent, printable, status_items, status_line
from pipeline.core.output import say
from pipeline.core.progress import Pace, ProgressHistory, Status, new_warnings, pace

PANEL_WIDTH = 76
"""In columns, with the frame. The panel is narrower if the terminal is."""
BAR = 40
_PART = 5
"""Of a bar without an end, this part is filled, as a fraction of its cells."""
REFRESHES_PER_SECOND = 1.0
SILENT_SECONDS = 60.0
"""How long a log stays without a line while statuses come."""


class LiveView:
    """Shows each `Status` of a run that it is called with, see the module. `price`: of a device per hour, None if unknown.
    `policy`: the name of what the workers load, which is shown until one works.

    Between `__enter__` and `__exit__`, standard error is printed above the panel too if it is a terminal.
    """

    def __init__(self, console: Console, price: float | None = None, policy: str = "") -> None:
        self._console = console
        self._price = price
        self._policy = policy
        self._stage = ""
        self._began: dict[str, float] = {}
        self._start = time.monotonic()
        self._printed = self._start
        self._any_started = False
        self._course = ProgressHistory()
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

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._live.stop()

    def __call__(self, status: Status) -> None:
        now = time.monotonic()
        changed, self._stage = status.stage != self._stage, status.stage
        for warning in new_warnings(self._status.warnings if self._status else (), status.warnings):
            say(f"warning: {warning}")
        self._any_started |= status.workers > 0
        # A stage that begins again keeps its first start, but for those before the first worker: "loading the policy" is shown
        # before it is known that the model is downloaded first.
        if changed and not self._any_started:
            self._began[status.stage] = now
        self._began.setdefault(status.stage, now)
        self._course.take(status, now - self._start)
        self._status = status
        if self._live and changed:
            self._live.refresh()
        elif self._live is None and (changed or _at_work(status) or now - self._printed >= SILENT_SECONDS):
            self._printed = now
            line = status_line(status, pace(self._course.samples, status), self._seconds(), self._price)
            loads = f" | policy {printable(self._policy)}" if self._policy and is_starting(status) else ""
            self._console.print(Text(line + loads), soft_wrap=True)

    def _seconds(self) -> float:
        return time.monotonic() - self._began[self._stage]

    def _drawn(self) -> RenderableType:
        if self._status is None:
            return Text()
        return panel(
            self._status,
            pace(self._course.samples, self._status),
            self._seconds(),
            self._price,
            width=self._console.width,
            policy=self._policy if is_starting(self._status) else "",
        )


def _at_work(status: Status) -> bool:
    return bool(status.rollouts or status.load.running or status.load.waiting)


def is_starting(status: Status) -> bool:
    """Whether the units are known and no worker has worked yet: machines are waited for, or a model is fetched or loaded."""
    return bool(status.units) and not (status.workers or status.device_seconds or _at_work(status))


def panel(
    status: Status, pace: Pace, seconds: float, price: float | None, *, width: int, policy: str = ""
) -> RenderableType:
    """The status as a panel. `seconds`: how long its stage has lasted. `width`: of the terminal, in columns. `policy`: what is
    loaded; a bar that moves shows that it is still awaited."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, outcome in status_items(status, pace, price):
        table.add_row(name, Text(outcome))
    cells = min(BAR, width // 3)
    if policy:
        table.add_row("policy", Text(printable(policy)))
        table.add_row("", Text(_moving_bar(seconds, cells=cells)))
    if status.rollouts_expected:
        table.add_row("done", Text(_progress_bar(status.rollouts / status.rollouts_expected, cells=cells)))
    outer = min(PANEL_WIDTH, max(width - 1, 1))
    title = Text(f"{printable(status.stage)} {format_duration(seconds)}")
    # A long title would widen the panel.
    title.truncate(max(outer - 6, 1), overflow="ellipsis")
    return Panel(table, title=title, title_align="left", width=outer, padding=(0, 1))


def _moving_bar(seconds: float, *, cells: int) -> str:
    """A bar without an end: its filled part moves by a cell a second, to and fro."""
    filled = max(1, cells // _PART)
    ways = max(1, cells - filled)
    at = ways - abs(int(seconds) % (2 * ways) - ways)
    return "".join("█" if at <= cell < at + filled else "·" for cell in range(cells))


def _progress_bar(share: float, *, cells: int) -> str:
    full = round(min(1.0, share) * cells)
    return f"{'█' * full}{'·' * (cells - full)} {format_percent(share)}"
