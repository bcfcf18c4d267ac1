"""The charts of a run's report, each with a text on how to read it and with its numbers. A function returns None if there is
nothing to show."""

from collections.abc import Sequence

import polars as pl

from pipeline.analysis.report import aggregates
from pipeline.consensus.kept import KeptGroup
from pipeline.core.formatting import format_percent, format_span
from pipeline.display.document import BY_LABEL, BY_OUTCOME, Axis, Chart, ChartKind, Mark, Scale, Table

_PLACES = "0 is the bare problem (before step 1), 1 is the last step."
_POSITION = Axis(title="position in the chain")
_QUARTILES = ("mean", "low", "high")


def values(counts: pl.DataFrame, shown: str) -> Chart | None:
    """`counts`: see `aggregates.value_counts`. `shown`: the name of the value."""
    return _histogram(
        counts,
        title="Values of steps",
        reading=f"Number of steps by {shown} and by outcome of their chain. Last steps are left out. After a step near 0 or 1, "
        "the outcome is almost certain.",
        axis="value of the step",
        what="steps",
        bar=aggregates.VALUE_BAR,
    )


def drops(counts: pl.DataFrame) -> Chart | None:
    """`counts`: see `aggregates.drop_counts`."""
    return _histogram(
        counts,
        title="Largest drop of each chain",
        reading="How far the value falls at the worst step of each chain. Last steps count: a wrong chain whose steps look "
        "good falls to 0 at its last step. Chains at the right have a clear error or such a last step.",
        axis="largest drop of the value from one step to the next",
        what="chains",
        bar=aggregates.DROP_BAR,
    )


def by_position(found: pl.DataFrame) -> Chart | None:
    """`found`: see `aggregates.value_by_position`."""
    closed = found.filter(pl.col("outcome") != "open")
    if closed.is_empty():
        return None
    rows = [{**row, "at": row["position"] / aggregates.POSITION_BINS} for row in closed.iter_rows(named=True)]
    return Chart(
        title="Value along the chain",
        reading=f"Mean value in right and in wrong chains; the band holds the middle half of the values. {_PLACES} The value "
        "of a last step is the outcome.",
        kind=ChartKind.lines,
        marks=tuple(
            Mark(x=row["at"], y=row["mean"], low=row["low"], high=row["high"], group=row["outcome"]) for row in rows
        ),
        x=_POSITION,
        y=Axis(title="value"),
        groups=BY_OUTCOME,
        numbers=Table(
            heads=("chains", "position", "mean", "lower quartile", "upper quartile", "values"),
            rows=tuple(
                (row["outcome"], f"{row['at']:.1f}", *(f"{row[name]:.2f}" for name in _QUARTILES), f"{row['steps']:,}")
                for row in rows
            ),
        ),
    )


def labels(counts: pl.DataFrame) -> Chart | None:
    """`counts`: see `aggregates.label_counts`."""
    if counts.is_empty():
        return None
    totals = dict(counts.group_by("outcome").agg(pl.sum("steps")).iter_rows())
    rows = [{**row, "share": row["steps"] / totals[row["outcome"]]} for row in counts.iter_rows(named=True)]
    return Chart(
        title="Labels",
        reading="Labels of the steps of right, wrong and open chains. Last steps are left out. In the data, good is 1, bad 0, "
        "neutral 2 and uncertain null.",
        kind=ChartKind.bars,
        marks=tuple(
            Mark(x=row["outcome"], y=row["share"], group=row["label"], query=_query(row["label"], row["outcome"]))
            for row in rows
        ),
        x=Axis(),
        y=Axis(title="share of the steps"),
        groups=BY_LABEL,
        numbers=Table(
            heads=("chains", "label", "steps", "share"),
            rows=tuple(
                (row["outcome"], row["label"], f"{row['steps']:,}", format_percent(row["share"])) for row in rows
            ),
            words=2,
        ),
    )


def uncertain(found: pl.DataFrame) -> Chart | None:
    """`found`: see `aggregates.uncertain_by_position`."""
    if not found["uncertain"].sum():
        return None
    return _shares(
        found,
        title="Uncertain steps",
        reading=f"Share of the steps whose label is uncertain with the rollouts so far, along the chain. Last steps are left "
        f"out. {_PLACES}",
        part="uncertain",
        whole="steps",
        bar=aggregates.UNCERTAIN_BAR,
    )


def truncation(found: pl.DataFrame) -> Chart | None:
    """`found`: see `aggregates.truncated_by_position`."""
    if not found["truncated"].sum():
        return None
    return _shares(
        found,
        title="Truncated rollouts",
        reading=f"Share of the rollouts that were cut by sampling.max_tokens, along the chain. {_PLACES}",
        part="truncated",
        whole="rollouts",
        bar=aggregates.TRUNCATED_BAR,
    )


def widths(counts: pl.DataFrame) -> Chart | None:
    """`counts`: see `aggregates.widths`."""
    if counts.is_empty():
        return None
    return Chart(
        title="Interval width against rollouts",
        reading="Width of the interval of each prefix by its number of rollouts. Cells with more colour hold more prefixes. A "
        "narrow interval means a certain value.",
        kind=ChartKind.heat,
        # A tick of the axis is in the middle of its count.
        marks=tuple(
            Mark(x=spent - 0.5, x_end=until + 0.5, y=low, y_end=high, weight=prefixes)
            for spent, until, low, high, prefixes in counts.iter_rows()
        ),
        x=Axis(title="rollouts of the prefix", scale=Scale.counts),
        y=Axis(title="width of the interval"),
        numbers=Table(
            heads=("rollouts", "width", "prefixes"),
            rows=tuple(
                (format_span(spent, until), f"{low:.2f}-{high:.2f}", f"{prefixes:,}")
                for spent, until, low, high, prefixes in counts.iter_rows()
            ),
            words=2,
        ),
    )


def verdicts(counts: pl.DataFrame) -> Chart | None:
    """`counts`: see `aggregates.verdict_counts`."""
    if counts.is_empty():
        return None
    total = counts["rollouts"].sum()
    rows = [
        {**row, "share": row["rollouts"] / total, "text": format_percent(row["rollouts"] / total)}
        for row in counts.with_columns(pl.col("verdict").str.replace_all("_", " ")).iter_rows(named=True)
    ]
    return Chart(
        title="Verdicts",
        reading="Verdicts of the answer checker. Unparseable, over limit, timeout and crashed are ungraded: they never count "
        "as incorrect.",
        kind=ChartKind.bars,
        marks=tuple(Mark(x=row["verdict"], y=row["share"]) for row in rows),
        x=Axis(),
        y=Axis(),
        numbers=Table(
            heads=("verdict", "rollouts", "share", "tokens"),
            rows=tuple((row["verdict"], f"{row['rollouts']:,}", row["text"], f"{row['tokens']:,}") for row in rows),
        ),
    )


def left_out(groups: Sequence[KeptGroup], by: str, reading: str) -> Chart | None:
    """Chains without labels by consensus. `by`: what the groups are, see `consensus.kept`."""
    if not any(group.left_out for group in groups):
        return None
    return Chart(
        title=f"Left out by {by}",
        reading=reading,
        kind=ChartKind.bars,
        marks=tuple(Mark(x=group.name, y=group.share) for group in groups),
        x=Axis(),
        y=Axis(title="share left out"),
        numbers=Table(
            heads=(by, "chains", "left out", "share"),
            rows=tuple(
                (group.name, f"{group.chains:,}", f"{group.left_out:,}", format_percent(group.share))
                for group in groups
            ),
        ),
    )


def _query(bar: str, outcome: str = "") -> str:
    """What lists the chains of a bar, see `aggregates.bars_of`, in the browser of chains."""
    return f"outcome={outcome[0]}&bar={bar}" if outcome else f"bar={bar}"


def _histogram(counts: pl.DataFrame, *, title: str, reading: str, axis: str, what: str, bar: str) -> Chart | None:
    """Bars by outcome. `counts`: `low` and `high` of each bin in [0, 1], its number of each of OUTCOMES, and `all`. `bar`: the
    letter of the marks of its bars."""
    if not counts["all"].sum():
        return None
    return Chart(
        title=title,
        reading=reading,
        kind=ChartKind.histogram,
        marks=tuple(
            Mark(x=low, x_end=high, y=by_outcome[at], group=outcome, query=_query(f"{bar}{number}", outcome))
            for number, (low, high, *by_outcome, _) in enumerate(counts.iter_rows())
            for at, outcome in enumerate(aggregates.OUTCOMES)
            if by_outcome[at]
        ),
        x=Axis(title=axis),
        y=Axis(title=what),
        groups=BY_OUTCOME,
        numbers=Table(
            heads=("from", "to", *(f"{outcome} chains" for outcome in aggregates.OUTCOMES), f"all {what}"),
            rows=tuple((f"{low:.2f}", f"{high:.2f}", *(f"{n:,}" for n in each)) for low, high, *each in counts.iter_rows()),
            words=0,
        ),
    )  # fmt: skip


def _shares(found: pl.DataFrame, *, title: str, reading: str, part: str, whole: str, bar: str) -> Chart:
    rows = [{**row, "at": row["position"] / aggregates.POSITION_BINS} for row in found.iter_rows(named=True)]
    return Chart(
        title=title,
        reading=reading,
        kind=ChartKind.columns,
        marks=tuple(Mark(x=row["at"], y=row["share"], query=_query(f"{bar}{row['position']}")) for row in rows),
        x=_POSITION,
        y=Axis(),
        numbers=Table(
            heads=("position", part, whole, "share"),
            rows=tuple(
                (f"{row['at']:.1f}", f"{row[part]:,}", f"{row[whole]:,}", format_percent(row["share"])) for row in rows
            ),
        ),
    )
