"""What a sweep shows: a table with a line for each run, the comparison of each run with the first, and the page of both."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl
from rich.console import Console
from rich.text import Text

from pipeline import __version__
from pipeline.analysis.compare.comparison import Comparison, format_interval
from pipeline.analysis.compare.run import compare_runs
from pipeline.analysis.report import aggregates
from pipeline.analysis.report.contents import format_time
from pipeline.analysis.report.page import Page, Section, Table, html
from pipeline.analysis.report.rich_tables import as_rich
from pipeline.analysis.report.run_data import RunData
from pipeline.analysis.report.terminal import print_lines
from pipeline.analysis.status import run_status
from pipeline.core.errors import StepvalueError, first_line
from pipeline.core.formatting import format_count, format_percent, printable
from pipeline.storage.location import last_part, storage_at
from pipeline.storage.sweep_record import RunFigures, Sweep, SweepState, SweptRun, run_path

KIND = "sweep"
_WIDTH = 200
"""No table of usual settings needs more columns. A narrower terminal wraps the lines, so that no figure is cut."""
_VALUE = 40
"""Characters of a swept value that a table shows."""
_UNKNOWN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A run of a sweep, by its number, and how it differs from the first: `found`, or `fault`, why they cannot be compared."""

    number: int
    found: Comparison | None = None
    fault: str = ""


def figures_of(found: RunData) -> RunFigures:
    """The figures of a finished run."""
    labels = dict(aggregates.label_counts(found.steps).group_by("label").agg(pl.sum("steps")).iter_rows())
    return RunFigures(
        chains=found.totals.chains,
        rollouts=found.totals.rollouts,
        tokens=found.totals.tokens + found.totals.solution_tokens,
        good=labels.get("good", 0),
        bad=labels.get("bad", 0),
        neutral=labels.get("neutral", 0),
        uncertain=labels.get("uncertain", 0),
        mean_value=aggregates.mean_value(found.steps),
    )


def observed(sweep: Sweep, folder: str, now: float) -> Sweep:
    """The sweep with what the directories say of runs that its record calls running: the command may be dead. `now`: seconds
    since 1970."""

    def seen(run: SweptRun) -> SweptRun:
        if run.state is not SweepState.RUNNING:
            return run
        try:
            condition = run_status(storage_at(run_path(folder, run.name)), now).condition
        except StepvalueError as error:
            return replace(run, message=first_line(error))
        return replace(run, message=f"its directory says: {condition.state.value}, {condition.why}")

    return replace(sweep, runs=tuple(map(seen, sweep.runs)))


def compare_with_first(folder: str, sweep: Sweep, check: Callable[[], None] = lambda: None) -> list[ComparedRun]:
    """Each finished run compared with the first finished one; empty if there are less than two. `check` is called before each
    and may raise."""
    done = [(number, run) for number, run in enumerate(sweep.runs, start=1) if run.state is SweepState.FINISHED]
    compared = []
    for number, run in done[1:]:
        check()
        compared.append(_compared(folder, done[0][1], number, run))
    return compared


def _compared(folder: str, first: SweptRun, number: int, run: SweptRun) -> ComparedRun:
    try:
        return ComparedRun(
            number=number, found=compare_runs((run_path(folder, first.name), run_path(folder, run.name)))
        )
    except StepvalueError as error:
        return ComparedRun(number=number, fault=first_line(error))


def runs_table(sweep: Sweep) -> Table:
    """A line for each run. A figure that is not known yet is a dash."""
    keys = list(dict.fromkeys(key for run in sweep.runs for key in run.values))
    neutral = any(run.figures and run.figures.neutral for run in sweep.runs)
    counts = ("good", "bad", *(["neutral"] if neutral else []), "uncertain")
    numbers = {run.name: number for number, run in enumerate(sweep.runs, start=1)}

    def row(number: int, run: SweptRun) -> tuple[str, ...]:
        made = run.figures
        figures = (
            [_UNKNOWN] * (len(counts) + 3)
            if made is None
            else [
                f"{made.rollouts:,}",
                f"{made.tokens:,}",
                *(f"{getattr(made, name):,}" for name in counts),
                _UNKNOWN if made.mean_value is None else f"{made.mean_value:.3f}",
            ]
        )
        of = numbers.get(run.rollouts_of)
        return (
            f"{number}",
            *(_cut(printable(run.values.get(key, _UNKNOWN))) for key in keys),
            run.state.value,
            "" if of is None else f"of {of}",
            *figures,
            _UNKNOWN if run.seconds is None else f"{run.seconds:,.1f}",
        )

    return Table(
        heads=("run", *keys, "state", "sampled", "rollouts", "tokens", *counts, "mean value", "seconds"),
        rows=tuple(row(number, run) for number, run in enumerate(sweep.runs, start=1)),
        words=len(keys) + 3,
    )


def remark_lines(sweep: Sweep) -> list[str]:
    """What a reader must know besides the figures: why runs failed, and which tokens were sampled once for several runs."""
    lines = [f"run {number}: {printable(run.message)}" for number, run in enumerate(sweep.runs, start=1) if run.message]
    shared = [run for run in sweep.runs if run.rollouts_of and run.figures is not None]
    if shared:
        own = sum(run.figures.tokens for run in sweep.runs if run.figures is not None and not run.rollouts_of)
        lines.append(
            f"{len(shared)} of {format_count(len(sweep.runs), 'run')} sampled nothing: they differ from the run whose rollouts "
            f"they have in settings that matter only after sampling. All runs together sampled {own:,} tokens"
        )
    return lines


def comparison_table(compared: Sequence[ComparedRun], first: int) -> Table:
    """How each run differs from the first one, which has the number `first`."""
    return Table(
        heads=("run", "common prefixes", f"value, minus that of {first}", "correlation", "labels that differ"),
        rows=tuple(_comparison_row(each) for each in compared),
    )


def _comparison_row(each: ComparedRun) -> tuple[str, ...]:
    found = each.found
    if found is None:
        return (f"{each.number}", *[_UNKNOWN] * 4)
    table = found.flips.table
    unlike = sum(number for i, row in enumerate(table) for j, number in enumerate(row) if i != j)
    total = sum(map(sum, table))
    share = f" ({format_percent(unlike / total)})" if total else ""
    return (
        f"{each.number}",
        f"{found.overlap.prefixes:,}",
        format_interval(found.shift.shift),
        format_interval(found.shift.pearson, ""),
        f"{unlike:,} of {total:,}{share}",
    )


def fault_lines(compared: Iterable[ComparedRun]) -> list[str]:
    """Why runs could not be compared with the first."""
    return [f"run {each.number} is not compared: {printable(each.fault)}" for each in compared if each.fault]


def print_sweep(console: Console, sweep: Sweep, compared: Sequence[ComparedRun] = ()) -> None:
    """Print the table of runs and, if there is one, that of the comparison."""
    console.width = max(console.width, _WIDTH)
    console.print(as_rich(runs_table(sweep)))
    print_lines(console, remark_lines(sweep))
    if compared:
        console.print()
        console.print(Text("each run compared with the first that is finished, over the prefixes of both:"))
        console.print(as_rich(comparison_table(compared, _first(sweep))))
        print_lines(console, fault_lines(compared))


def sweep_page(folder: str, sweep: Sweep, compared: Sequence[ComparedRun]) -> bytes:
    """The content of the page."""
    comparison = Section(
        anchor="comparison",
        heading="Compared with the first run",
        intro=(
            "Each distinct prefix that both runs have labelled counts once. Intervals treat problems as independent. Last "
            "steps are left out of labels."
        ),
        tables=(comparison_table(compared, _first(sweep)),) if compared else (),
    )
    return html(
        Page(
            title=last_part(folder),
            kind=KIND,
            details=(("folder", folder), ("began", f"{format_time(sweep.began_at)} UTC")),
            banners=tuple(f"{line[:1].upper()}{line[1:]}." for line in (*remark_lines(sweep), *fault_lines(compared))),
            sections=(
                Section(
                    anchor="runs",
                    heading="Runs",
                    intro="The directory of each run has a page of its own, report.html. Last steps of chains are left out. "
                    "Seconds are those of a run with its engines and its page, without the start of Ray, which all runs share.",
                    tables=(runs_table(sweep),),
                ),
                *((comparison,) if compared else ()),
            ),
            foot=(f"stepvalue {__version__}, {format_time(time.time())} UTC",),
        )
    )


def _first(sweep: Sweep) -> int:
    return next(number for number, run in enumerate(sweep.runs, start=1) if run.state is SweepState.FINISHED)


def _cut(text: str) -> str:
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}..."
