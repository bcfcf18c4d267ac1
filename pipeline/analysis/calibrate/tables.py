"""A calibration and its figures as tables of texts and lines of remarks, for the page and for the terminal."""

from collections.abc import Iterator

from rich.console import Console

from pipeline.analysis.calibrate.reliability import Reliability
from pipeline.analysis.calibrate.run import BeforeAfter, CalibrationReport
from pipeline.analysis.report.page import Table
from pipeline.analysis.report.rich_tables import print_tables, widen
from pipeline.analysis.report.terminal import print_lines
from pipeline.core.formatting import format_count
from pipeline.core.statistics import Interval
from pipeline.scorers.calibration import MapKind

WORDS = {
    MapKind.identity: "the scores as they are",
    MapKind.beta: "beta calibration",
    MapKind.isotonic: "isotonic regression",
}


def print_report(console: Console, report: CalibrationReport) -> None:
    """Print what was read, what was chosen and why, then the tables."""
    widen(console)
    print_lines(console, [*count_lines(report), *choice_lines(report)])
    print_lines(console, [f"note      {line}" for line in report.remarks])
    print_tables(console, titled_tables(report))


def titled_tables(report: CalibrationReport) -> Iterator[tuple[str, Table]]:
    """The tables of the terminal, in order."""
    yield "Scores as predictions of V, on problems that the maps were not fitted to", figures_table(report)
    yield "ECE and mean prediction minus V, by step", groups_table(report)
    yield "V by score, before", curve_table(report.total.before)
    yield "V by calibrated score, after", curve_table(report.total.after)


def count_lines(report: CalibrationReport) -> list[str]:
    """What was read and what of it counts."""
    counts, made = report.counts, report.calibration.made_from
    files = "" if len(report.files) == 1 else f" ({len(report.files):,} files)"
    others = (
        (counts.repeated, "repeated in another chain"),
        (counts.ends, "ends with an outcome"),
        (counts.unscored, "without a score"),
        (counts.unsampled, "without rollouts"),
        (counts.biased, "without an unbiased value"),
    )
    rest = "".join(f" + {number:,} {what}" for number, what in others if number)
    return [
        f"scores    {report.scores}{files}: {format_count(counts.scored, 'chain')}; by "
        f"{made.model or 'a model without a name'}",
        f"run       {made.run_dir}: {format_count(counts.chains, 'chain')} of these; policy {made.policy}, estimator "
        f"{made.estimator}",
        f"prefixes  {format_count(counts.steps, 'step')} = {counts.prefixes:,} prefixes that count{rest}",
        f"          of {format_count(counts.problems, 'problem')}, with {format_count(counts.rollouts, 'graded rollout')}",
        f"target    {report.target}",
    ]


def choice_lines(report: CalibrationReport) -> list[str]:
    """Which kind of map is taken, and why."""
    choice = report.choice
    gain = f"{choice.gain.value:+.4f}"
    if choice.gain.low is not None:
        gain += f" ({choice.gain.low:+.4f} to {choice.gain.high:+.4f})"
    kind = WORDS[choice.kind]
    if choice.kind is choice.best:
        reason = f"its Brier score on other problems is {gain} better than that of the scores"
    else:
        reason = (
            f"the best map, {WORDS[choice.best]}, gains {gain} of Brier score on other problems (below 0: it loses), which is "
            "no reliable gain"
        )
    return [f"map       {kind}: {reason}"]


def figures_table(report: CalibrationReport) -> Table:
    """Before and after: bias, ECE, Brier score and log loss."""
    rows = [("scores", *_cells(report.total.before)), ("calibrated", *_cells(report.total.after))]
    if report.given is not None:
        rows.insert(1, ("as in the file", *_cells(report.given)))
    if report.ends is not None:
        rows += [
            ("last steps: scores", *_cells(report.ends.before)),
            ("... calibrated", *_cells(report.ends.after)),
        ]
    caption = (
        "" if report.ends is None else "V of a last step is the outcome of its chain. No map is fitted to last steps."
    )
    heads = ("", "prefixes", "mean", "mean V", "too high by", "ECE", "Brier score", "log loss")
    return Table(heads=heads, rows=tuple(rows), caption=caption)


def groups_table(report: CalibrationReport) -> Table:
    """Before and after by group of steps."""
    return Table(
        heads=("steps", "prefixes", "problems", "too high by", "... calibrated", "ECE", "... calibrated"),
        rows=tuple(map(_group_row, report.groups)),
    )


def curve_table(found: Reliability) -> Table:
    """The reliability curve: V in bins of predictions."""
    rows = tuple(
        (
            f"{each.low:.2f}-{each.high:.2f}",
            f"{each.prefixes:,}",
            f"{each.prediction:.3f}",
            _figure(each.value),
        )
        for each in found.bins
    )
    return Table(heads=("score", "prefixes", "mean score", "mean V"), rows=rows)


def signed(figure: Interval) -> str:
    """A difference with its interval, such as `+0.12 (+0.10 to +0.14)`."""
    if figure.value is None:
        return "-"
    reach = "" if figure.low is None else f" ({figure.low:+.3f} to {figure.high:+.3f})"
    return f"{figure.value:+.3f}{reach}"


def _group_row(group: BeforeAfter) -> tuple[str, ...]:
    before, after = group.before, group.after
    return (
        group.name,
        f"{before.prefixes:,}",
        f"{before.problems:,}",
        signed(before.bias),
        signed(after.bias),
        _figure(before.ece),
        _figure(after.ece),
    )


def _cells(found: Reliability) -> tuple[str, ...]:
    return (
        f"{found.prefixes:,}",
        f"{found.prediction:.3f}",
        f"{found.value:.3f}",
        signed(found.bias),
        *map(_figure, (found.ece, found.brier, found.log_loss)),
    )


def _figure(figure: Interval) -> str:
    if figure.value is None:
        return "-"
    return f"{figure.value:.3f}" + ("" if figure.low is None else f" ({figure.low:.3f}-{figure.high:.3f})")
