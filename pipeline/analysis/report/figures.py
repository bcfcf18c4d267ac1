"""The charts of a run's report, each with a text on how to read it and with its numbers. A function returns None if there is
nothing to show."""

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from pipeline.analysis.compare.tables import format_span
from pipeline.analysis.report.aggregates import OUTCOMES, POSITION_BINS
from pipeline.analysis.report.page import (
    ACCENT,
    BY_LABEL,
    BY_OUTCOME,
    LINE,
    TEXT,
    Figure,
    Table,
    chart_of,
    rows_of,
    scale,
)
from pipeline.consensus.kept import KeptGroup
from pipeline.core.formatting import format_percent

_PLACES = "0 is the bare problem (before step 1), 1 is the last step."
_BAR = 26
_BESIDE_BARS = 60
_FEW = 5
"""Counts up to this one have a tick each."""


def values(counts: pl.DataFrame, shown: str) -> Figure | None:
    """`counts`: see `aggregates.value_counts`. `shown`: the name of the value."""
    return _histogram(
        counts,
        title="Values of steps",
        reading=f"Number of steps by {shown} and by outcome of their chain. Last steps are left out. After a step near 0 or 1, "
        "the outcome is almost certain.",
        axis="value of the step",
        what="steps",
    )


def drops(counts: pl.DataFrame) -> Figure | None:
    """`counts`: see `aggregates.drop_counts`."""
    return _histogram(
        counts,
        title="Largest drop of each chain",
        reading="How far the value falls at the worst step of each chain. Last steps count: a wrong chain whose steps look "
        "good falls to 0 at its last step. Chains at the right have a clear error or such a last step.",
        axis="largest drop of the value from one step to the next",
        what="chains",
    )


def by_position(found: pl.DataFrame) -> Figure | None:
    """`found`: see `aggregates.value_by_position`."""
    closed = found.filter(pl.col("outcome") != "open")
    if closed.is_empty():
        return None
    rows = [{**row, "at": row["position"] / POSITION_BINS} for row in closed.iter_rows(named=True)]
    x = alt.X("at:Q", title="position in the chain", scale=alt.Scale(domain=[0, 1]))
    colour = alt.Color("outcome:N", scale=scale(BY_OUTCOME, set(closed["outcome"])))
    dash = alt.StrokeDash("outcome:N", scale=alt.Scale(domain=["right", "wrong"], range=[[1, 0], [6, 3]]), legend=None)
    base = alt.Chart(rows_of(rows))
    # Bands are faint, so that both lines stay readable where the bands overlap.
    band = base.mark_area(opacity=0.18).encode(x=x, y=_unit("low:Q", "value"), y2="high:Q", color=colour)
    lines = base.mark_line(strokeWidth=2.5).encode(x=x, y=_unit("mean:Q", "value"), color=colour, strokeDash=dash)
    points = base.mark_point(filled=True, size=30, opacity=1).encode(x=x, y=_unit("mean:Q", "value"), color=colour)
    return Figure(
        title="Value along the chain",
        reading=f"Mean value in right and in wrong chains; the band holds the middle half of the values. {_PLACES} The value "
        "of a last step is the outcome.",
        chart=chart_of(band + lines + points),
        numbers=Table(
            heads=("chains", "position", "mean", "lower quartile", "upper quartile", "values"),
            rows=tuple(
                (row["outcome"], f"{row['at']:.1f}", *(f'{row[name]:.2f}' for name in _QUARTILES), f"{row['steps']:,}")
                for row in rows
            ),
        ),
    )  # fmt: skip


def labels(counts: pl.DataFrame) -> Figure | None:
    """`counts`: see `aggregates.label_counts`."""
    if counts.is_empty():
        return None
    totals = dict(counts.group_by("outcome").agg(pl.sum("steps")).iter_rows())
    rows = [{**row, "share": row["steps"] / totals[row["outcome"]]} for row in counts.iter_rows(named=True)]
    chart = (
        alt.Chart(rows_of(rows))
        .mark_bar(height=_BAR)
        .encode(
            y=alt.Y("outcome:N", title=None, sort=list(OUTCOMES), axis=_names()),
            x=alt.X("share:Q", title="share of the steps", axis=_percents(), scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("label:N", scale=scale(BY_LABEL, set(counts["label"]))),
            order=alt.Order("at:Q"),
        )
        .transform_calculate(at=f"indexof({list(BY_LABEL)}, datum.label)")
    )
    return Figure(
        title="Labels",
        reading="Labels of the steps of right, wrong and open chains. Last steps are left out. In the data, good is 1, bad 0, "
        "neutral 2 and uncertain null.",
        chart=chart_of(chart, height=_BESIDE_BARS + (_BAR + 14) * len(totals)),
        numbers=Table(
            heads=("chains", "label", "steps", "share"),
            rows=tuple(
                (row["outcome"], row["label"], f"{row['steps']:,}", format_percent(row["share"])) for row in rows
            ),
            words=2,
        ),
    )


def uncertain(found: pl.DataFrame) -> Figure | None:
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
    )


def truncation(found: pl.DataFrame) -> Figure | None:
    """`found`: see `aggregates.truncated_by_position`."""
    if not found["truncated"].sum():
        return None
    return _shares(
        found,
        title="Truncated rollouts",
        reading=f"Share of the rollouts that were cut by sampling.max_tokens, along the chain. {_PLACES}",
        part="truncated",
        whole="rollouts",
    )


def widths(counts: pl.DataFrame) -> Figure | None:
    """`counts`: see `aggregates.widths`."""
    if counts.is_empty():
        return None
    # A tick of the axis is in the middle of its count.
    edges = counts.with_columns(begin=pl.col("from_rollouts") - 0.5, end=pl.col("to_rollouts") + 0.5)
    chart = (
        alt.Chart(rows_of(edges.to_dicts()))
        .mark_rect(fill=ACCENT, stroke=LINE, strokeWidth=0.5)
        .encode(
            x=alt.X("begin:Q", title="rollouts of the prefix", axis=alt.Axis(format="d", tickMinStep=1)),
            x2="end:Q",
            y=alt.Y("low:Q", title="width of the interval", scale=alt.Scale(domain=[0, 1])),
            y2="high:Q",
            opacity=alt.Opacity("prefixes:Q", scale=alt.Scale(type="log", range=[0.15, 1]), legend=None),
        )
    )
    return Figure(
        title="Interval width against rollouts",
        reading="Width of the interval of each prefix by its number of rollouts. Darker cells hold more prefixes. A narrow "
        "interval means a certain value.",
        chart=chart_of(chart),
        numbers=Table(
            heads=("rollouts", "width", "prefixes"),
            rows=tuple(
                (format_span(spent, until), f"{low:.2f}-{high:.2f}", f"{prefixes:,}")
                for spent, until, low, high, prefixes in counts.iter_rows()
            ),
            words=2,
        ),
    )


def verdicts(counts: pl.DataFrame) -> Figure | None:
    """`counts`: see `aggregates.verdict_counts`."""
    if counts.is_empty():
        return None
    total = counts["rollouts"].sum()
    rows = [
        {**row, "share": row["rollouts"] / total, "text": format_percent(row["rollouts"] / total)}
        for row in counts.with_columns(pl.col("verdict").str.replace_all("_", " ")).iter_rows(named=True)
    ]
    base = alt.Chart(rows_of(rows)).encode(
        y=alt.Y("verdict:N", title=None, sort=None, axis=_names()),
        x=alt.X("share:Q", title=None, axis=None, scale=alt.Scale(domain=[0, 1.15])),
    )
    drawing = chart_of(
        base.mark_bar(color=ACCENT, height=16) + base.mark_text(align="left", dx=5).encode(text="text:N"),
        height=20 + 26 * len(rows),
    )
    return Figure(
        title="Verdicts",
        reading="Verdicts of the answer checker. Unparseable, over limit, timeout and crashed are ungraded: they never count "
        "as incorrect.",
        chart=drawing,
        numbers=Table(
            heads=("verdict", "rollouts", "share", "tokens"),
            rows=tuple((row["verdict"], f"{row['rollouts']:,}", row["text"], f"{row['tokens']:,}") for row in rows),
        ),
    )


def left_out(groups: Sequence[KeptGroup], by: str, reading: str) -> Figure | None:
    """Chains without labels by consensus. `by`: what the groups are, see `consensus.kept`."""
    if not any(group.left_out for group in groups):
        return None
    names = [group.name for group in groups]
    rows = [{"name": group.name, "share": group.share} for group in groups]
    chart = (
        alt.Chart(rows_of(rows))
        .mark_bar(height=_BAR, color=ACCENT)
        .encode(
            y=alt.Y("name:N", title=None, sort=names, axis=_names()),
            x=alt.X("share:Q", title="share left out", axis=_percents(), scale=alt.Scale(domain=[0, 1])),
        )
    )
    return Figure(
        title=f"Left out by {by}",
        reading=reading,
        chart=chart_of(chart, height=_BESIDE_BARS + (_BAR + 14) * len(groups)),
        numbers=Table(
            heads=(by, "chains", "left out", "share"),
            rows=tuple(
                (group.name, f"{group.chains:,}", f"{group.left_out:,}", format_percent(group.share))
                for group in groups
            ),
        ),
    )


def _histogram(counts: pl.DataFrame, *, title: str, reading: str, axis: str, what: str) -> Figure | None:
    """Bars by outcome. `counts`: `low` and `high` of each bin in [0, 1], its number of each of OUTCOMES, and `all`."""
    if not counts["all"].sum():
        return None
    rows: list[dict[str, Any]] = [
        {"low": low, "high": high, "outcome": outcome, "count": by_outcome[at], "at": at}
        for low, high, *by_outcome, _ in counts.iter_rows()
        for at, outcome in enumerate(OUTCOMES)
    ]
    shown = [row for row in rows if row["count"]]
    chart = (
        alt.Chart(rows_of(shown))
        .mark_bar(binSpacing=1)
        .encode(
            x=alt.X("low:Q", bin="binned", title=axis, axis=alt.Axis(tickCount=5), scale=alt.Scale(domain=[0, 1])),
            x2="high:Q",
            y=alt.Y("count:Q", title=what, axis=_counts(max(counts["all"]))),
            color=alt.Color("outcome:N", scale=scale(BY_OUTCOME, {row["outcome"] for row in shown})),
            order=alt.Order("at:Q"),
        )
    )
    return Figure(
        title=title,
        reading=reading,
        chart=chart_of(chart),
        numbers=Table(
            heads=("from", "to", *(f"{outcome} chains" for outcome in OUTCOMES), f"all {what}"),
            rows=tuple((f"{low:.2f}", f"{high:.2f}", *(f"{n:,}" for n in each)) for low, high, *each in counts.iter_rows()),
            words=0,
        ),
    )  # fmt: skip


def _shares(found: pl.DataFrame, *, title: str, reading: str, part: str, whole: str) -> Figure:
    rows = [{**row, "at": row["position"] / POSITION_BINS} for row in found.iter_rows(named=True)]
    most = min(1.0, max(row["share"] for row in rows) * 1.1)
    x = alt.X(
        "at:Q",
        title="position in the chain",
        scale=alt.Scale(domain=[-0.05, 1.05]),
        axis=alt.Axis(values=_TENTHS, tickCount=len(_TENTHS), format=".1f"),
    )
    y = alt.Y("share:Q", title=None, axis=_percents(), scale=alt.Scale(domain=[0, most]))
    chart = alt.Chart(rows_of(rows)).mark_bar(color=ACCENT, width=22).encode(x=x, y=y)
    return Figure(
        title=title,
        reading=reading,
        chart=chart_of(chart),
        numbers=Table(
            heads=("position", part, whole, "share"),
            rows=tuple(
                (f"{row['at']:.1f}", f"{row[part]:,}", f"{row[whole]:,}", format_percent(row["share"])) for row in rows
            ),
        ),
    )


_QUARTILES = ("mean", "low", "high")
_TENTHS = [0, 0.2, 0.4, 0.6, 0.8, 1]


def _names() -> alt.Axis:
    """An axis with space for the labels, because the reader's font may be wider than the one they were measured with."""
    return alt.Axis(labelFontSize=12, labelColor=TEXT, minExtent=80)


def _counts(most: float) -> alt.Axis:
    """An axis of counts up to `most`. Small counts have ticks at whole numbers only."""
    axis = alt.Axis(format="~s", labelExpr="datum.value ? datum.label : '0'")
    if most <= _FEW:
        axis.values = list(range(math.ceil(most) + 1))
    return axis


def _percents() -> alt.Axis:
    return alt.Axis(format="~%", tickCount=5)


def _unit(field: str, title: str) -> alt.Y:
    return alt.Y(field, title=title, scale=alt.Scale(domain=[0, 1]))
