"""The terminal output of a run: a live panel while it works (plain lines in a log), then its chains, its totals, the reasons
for rejected rows, and its speed compared with what the hardware allows.

The panel has at most `PANEL_WIDTH` columns, so that its lines rarely break when the terminal gets narrower. It is drawn once a
second. Other output, such as warnings, appears above it.

A log gets a line when the stage changes, one for each status with rollouts, and one a minute while nothing else happens, such
as while a large model is downloaded and loaded.
"""

import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pipeline.consensus.kept import label_place, reason_text, witness_places
from pipeline.core.formatting import (
    format_count,
    format_duration,
    format_percent,
    format_work,
    plain_lines,
    printable,
    status_items,
    status_line,
)
from pipeline.core.hardware import Hardware, Throughput
from pipeline.core.output import say
from pipeline.core.progress import Pace, RelabelResult, Status, Summary, new_warnings, pace
from pipeline.core.records import Totals
from pipeline.storage.starts import ProgressHistory

if TYPE_CHECKING:
    from pipeline.analysis.report.run_data import RejectedRows

_BAR = 10
_RULES = {1: ("+", "green"), 0: ("-", "red"), 2: ("o", "blue"), None: ("?", "yellow")}
_CHECKED = {1: "holds", 0: "refuted", None: "not checked"}
_WITHOUT_COUNTS = ("terminal", "unmeasured", "implied")
PANEL_WIDTH = 76
"""In columns, with the frame. The panel is narrower if the terminal is."""
_LINE_WIDTH = 80
"""Of explanations that are wrapped; also in a log, where no terminal wraps them."""
BAR = 40
_PART = 5
"""Of a bar without an end, this part is filled, as a fraction of its cells."""
SHOWN_REJECTS = 3
_DETAIL = 300
"""Characters of the reason for a reject that are shown. Names of columns in it may be long."""
REFRESHES_PER_SECOND = 1.0
MOSTLY_THERE = 0.9
"""Engines on average, below which a run was without one for a while, such as the time that a replacement took to start."""
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
            line = status_line(status, self._pace(), self._seconds(), self._price)
            loads = f" | policy {printable(self._policy)}" if self._policy and is_starting(status) else ""
            self._console.print(Text(line + loads), soft_wrap=True)

    def _pace(self) -> Pace:
        return pace(self._course.samples, self._status.rollouts_expected if self._status else 0)

    def _seconds(self) -> float:
        return time.monotonic() - self._began[self._stage]

    def _drawn(self) -> RenderableType:
        if self._status is None:
            return Text()
        return panel(
            self._status,
            self._pace(),
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
    if policy:
        table.add_row("policy", Text(printable(policy)))
        table.add_row("", Text(_moving_bar(seconds, cells=min(BAR, width // 3))))
    if status.rollouts_expected:
        table.add_row(
            "done", Text(_progress_bar(status.rollouts / status.rollouts_expected, cells=min(BAR, width // 3)))
        )
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


def given_mark(outcome: bool | None, final_answer: str | None) -> str:
    """What follows the outcome of a chain that states no answer, so that its outcome is the one in the data."""
    return ", as the data say" if outcome is not None and final_answer is None else ""


def print_chains(console: Console, chains: Sequence[Mapping[str, Any]]) -> None:
    """Print one block per chain: the text, value, interval, counts and label of each step; of labels by consensus also what
    Monte Carlo and the witnesses say."""
    problem = None
    for chain in chains:
        if chain["problem_id"] != problem:
            problem = chain["problem_id"]
            console.print()
            console.print(Text(plain_lines(chain["problem"]), style="bold"))
            root = _estimate(chain["root_value"], chain["root_low"], chain["root_high"])
            console.print(
                Text(f"answer {plain_lines(chain['gold_answer'])}; value before step 1: {root}, ")
                + Text(_counts(chain["root_n_correct"], chain["root_n_rollouts"]))
            )
        outcome = {True: "right", False: "wrong", None: "open"}[chain["outcome"]]
        outcome += given_mark(chain["outcome"], chain["final_answer"])
        agreed = chain.get("mc_label") is not None
        said = "; ".join([outcome, *(first_errors(chain) if agreed else [])])
        table = Table(
            title=Text(plain_lines(f"{chain['source_id'] or chain['chain_id']} ({said})")),
            title_justify="left",
            box=None,
            pad_edge=False,
        )
        table.add_column("step", justify="right")
        table.add_column("text", overflow="fold", min_width=24, ratio=1)
        for name in ("value", "interval", "correct", "label"):
            table.add_column(name, no_wrap=True)
        columns = ("steps", "value", "low", "high", "n_correct", "n_rollouts", "label", "origin")
        for index, entry in enumerate(zip(*(chain[name] for name in columns), strict=True), start=1):
            text, value, low, high, correct, rollouts, label, origin = entry
            mark, colour = _RULES[label]
            table.add_row(
                str(index),
                Text(plain_lines(text)) + (_opinions(chain, index) if agreed else Text()),
                Text(_bar(value)),
                Text("" if low is None or origin == "terminal" else f"{low:.2f}-{high:.2f}"),
                Text(origin if origin in _WITHOUT_COUNTS else _counts(correct, rollouts)),
                Text(mark, style=colour),
            )
        console.print(table)


def first_errors(chain: Mapping[str, Any]) -> list[str]:
    """Of a row of labels by consensus: why it has no labels, and the first error that Monte Carlo and each witness name."""
    out = chain["left_out"]
    places = {"Monte Carlo": label_place(chain["mc_label"]), **witness_places(chain["opinions"])}
    named = {None: "unknown", 0: "none"}
    errors = (f"{name} {named.get(place, f'step {place}')}" for name, place in places.items())
    return [*([] if out is None else [f"left out: {reason_text(out)}"]), f"first error: {', '.join(errors)}"]


def _opinions(chain: Mapping[str, Any], step: int) -> Text:
    """A line on what Monte Carlo alone and the witnesses say of a step: its label, the shares of votes that name it as the
    first error, and P(no error so far)."""
    mark, _ = _RULES[chain["mc_label"][step - 1]]
    parts = [
        f"{each['witness']} {_CHECKED[each['steps'][step - 1]]}"
        if each["steps"] is not None
        else f"{each['witness']} {format_percent(each['first_error'][step - 1])}"
        for each in chain["opinions"]
        if each["steps"] is not None or each["first_error"][step - 1]
    ]
    free = chain["p_error_free"]
    sure = [] if free is None else [f"no error so far {free[step - 1]:.2f}"]
    return Text(plain_lines("\n" + ", ".join([f"Monte Carlo {mark}", *parts, *sure])), style="dim")


def print_summary(console: Console, summary: Summary) -> None:
    """Print the totals of the run, and the time and the speed of this start."""

    def line(text: str) -> None:
        console.print(Text(plain_lines(text)), soft_wrap=True)

    totals = summary.totals
    if summary.units_done_now == 0:
        line("Nothing to do: this run is already finished.")
    for text in totals_lines(totals):
        line(text)
    if summary.units_done_now:
        seconds = summary.seconds_working
        rate = f" ({summary.now.tokens / seconds:,.0f} tokens/s)" if seconds >= 1 else ""
        line(
            f"time      {summary.seconds_starting:.0f} s to start, {seconds:.0f} s to sample and grade "
            f"{format_count(summary.now.rollouts, 'rollout')}{rate}"
        )
    if summary.throughput:
        line("engine    " + "\n          ".join(speed_lines(summary.throughput)))
    if summary.overspent:
        line(f"budget    {summary.overspent}")
    for name in summary.damaged:
        line(f"damaged   {name}: moved to damaged/; its content was made again")
    line(f"labels    {summary.run_dir}/labels/*.parquet" if totals.chains else f"labels    none in {summary.run_dir}")
    if summary.labels:
        line(f"          these are {summary.labels}")


def totals_lines(totals: Totals) -> list[str]:
    """The totals as lines; each sum adds up."""
    lines: list[str] = []
    add = lines.append
    add(f"rows      {totals.rows:,} read = {totals.used:,} used + {totals.rejected:,} rejected")
    if totals.mended:
        rows = format_count(totals.mended, "row")
        add(f"          {rows} with LaTeX whose backslash JSON took, put back; in JSON, write \\\\frac")
    add(f"work      {format_work(totals)}")
    add(
        f"rollouts  {totals.rollouts:,} = {totals.correct:,} correct + {totals.incorrect:,} incorrect "
        f"+ {totals.no_answer:,} without an answer + {totals.ungraded:,} ungraded"
        + (f" + {totals.aborted:,} aborted (no longer needed)" if totals.aborted else "")
    )
    if totals.truncated:
        add(f"          {totals.truncated:,} of them cut by sampling.max_tokens")
    if totals.engine_failed:
        add(f"          {totals.engine_failed:,} got no answer from any engine (finish engine_failed)")
    if totals.rollouts and totals.prefixes:
        add(f"          on average {totals.rollouts / totals.prefixes:.1f} for each prefix")
    if totals.spent:
        lines += _wrapped(
            f"spent     {totals.spent:,} of {format_count(totals.chains, 'chain')} used up their budget before their values "
            "were known to within estimator.target_sd; for more rollouts, raise sampling.rollouts, estimator.budget or "
            "estimator.run_budget and start `label` again"
        )
    if totals.too_long:
        add(f"          {format_count(totals.too_long, 'prefix')} did not fit into the policy's context: see rejects/")
    add(
        f"tokens    {totals.tokens:,} in rollouts"
        + (f", {totals.solution_tokens:,} in sampled solutions" if totals.solution_tokens else "")
    )
    return lines


def print_new_labels(console: Console, edited: RelabelResult) -> None:
    """Print what `relabel` or `regrade` changed."""

    def line(text: str) -> None:
        console.print(Text(plain_lines(text)), soft_wrap=True)

    if edited.number is None:
        line("Nothing to do: the labels already have these settings.")
    else:
        line(f"verdicts  {edited.verdicts_changed:,} of {edited.rollouts:,} changed")
        for change, count in edited.verdict_changes.most_common():
            line(f"          {count:,} from {change}")
        line(
            f"labels    {edited.labels_changed:,} of {edited.labels:,} changed, in a run of "
            f"{format_count(edited.chains, 'chain')}"
        )
        line(f"edition   {edited.number} is new and holds the current labels: {edited.run_dir}/labels/*.parquet")
        if edited.number == 0:
            line("          editions are numbered from 0; the labels of `label` itself have no number")
    for note in edited.notes:
        line(note)


def print_lines(console: Console, lines: Sequence[str]) -> None:
    """Print lines without control characters and without wrapping."""
    for line in lines:
        console.print(Text(plain_lines(line)), soft_wrap=True)


def print_rejects(console: Console, rejected: "RejectedRows", run_dir: str) -> None:
    """Print why rows were rejected, the first of them with what to do, and where the others are."""
    print_lines(console, reject_lines(rejected, run_dir))


def reject_lines(rejected: "RejectedRows", run_dir: str) -> list[str]:
    """Why rows were rejected, the first of them with what to do, and where the others are."""
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in rejected.counts.items())
    counted = "; rows are counted from 1" if any(not row.location.file for row in rejected.first) else ""
    lines = [f"rejected  {reasons}{counted}"]
    for row in rejected.first:
        file, line = row.location.file.rpartition("/")[2], row.location.line
        where = f"{file}, row {line}" if file else f"row {line}"
        lines.append(f"          {printable(where)}: {row.reason}: {_shortened(printable(row.detail))}")
    more = sum(rejected.counts.values()) - len(rejected.first)
    others = f"{more:,} more, all of them" if more else "all of them"
    return [*lines, f"          {others} with what to do: {run_dir}/rejects/*.parquet"]


def _shortened(text: str) -> str:
    return text if len(text) <= _DETAIL else f"{text[:_DETAIL]} ..."


def speed_lines(speed: Throughput) -> list[str]:
    """Three lines: tokens/s compared with what the hardware allows; idle slots; work on prompts and grading."""
    engines = round(speed.engines)
    of_engines = f" of {engines} engines" if engines > 1 else ""
    if speed.engines < MOSTLY_THERE:
        # What they reached, below, is of the time when they were there.
        of_engines = f" of an engine that was there for {format_percent(speed.engines)} of the time"
    first = f"{speed.tokens_per_second:,.0f} tokens/s{of_engines}"
    parallel = "" if speed.batch is None else f"{format_count(round(speed.batch), 'completion')} at a time and "
    where = f"with {parallel}{format_count(round(speed.context), 'token')} of context"
    if speed.share is None or speed.prefill_share is None:
        first += f" {where}; what the hardware allows is unknown: {speed.hardware.unknown}"
    else:
        first += (
            f", {format_percent(speed.share)} of the most that {_name(speed.hardware)} can generate {where} "
            f"({format_percent(speed.share + speed.prefill_share)} if work on prompts counts too)"
        )
    tail = "" if speed.tail is None else f" ({format_percent(speed.tail)} after the last unit was given out)"
    whose = "engines'" if engines > 1 else "engine's"
    second = f"{format_percent(speed.idle)} of the {whose} slots were idle{tail}"
    prompts = (
        ""
        if speed.prefill_ratio is None
        else f"each token of a prompt was computed {speed.prefill_ratio:.2f} times on average (at best 1); "
    )
    return [first, second, f"{prompts}grading took {format_percent(speed.grading)} of the engine's time"]


def _wrapped(text: str) -> list[str]:
    """A long line in several, the later ones below its text."""
    return textwrap.wrap(text, _LINE_WIDTH, subsequent_indent=" " * 10, break_on_hyphens=False, break_long_words=False)


def _progress_bar(share: float, *, cells: int) -> str:
    full = round(min(1.0, share) * cells)
    return f"{'█' * full}{'·' * (cells - full)} {format_percent(share)}"


def _estimate(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return "unknown"
    return f"{value:.2f} ({low:.2f}-{high:.2f})"


def _counts(correct: int, rollouts: int) -> str:
    return f"{correct}/{rollouts}"


def _bar(value: float | None) -> str:
    if value is None:
        return "-"
    full = round(value * _BAR)
    return f"{value:.2f} {'█' * full}{'·' * (_BAR - full)}"


def _name(hardware: Hardware) -> str:
    assert hardware.device is not None
    return f"{hardware.devices} x {hardware.device.name}" if hardware.devices > 1 else hardware.device.name
