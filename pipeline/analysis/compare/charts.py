"""The charts of a comparison."""

import altair as alt

from pipeline.analysis.compare import tables
from pipeline.analysis.compare.compared import Comparison
from pipeline.analysis.report.drawn import ACCENT, LINE, MUTED, drawn, rows_of
from pipeline.analysis.report.parts import Figure, Table

_LARGE = 300


def scatter(found: Comparison) -> Figure | None:
    """Values of b against values of a."""
    counts = found.bins.counts
    n_bins = len(counts)
    cells = [
        {"a": i / n_bins, "to_a": (i + 1) / n_bins, "b": j / n_bins, "to_b": (j + 1) / n_bins, "prefixes": number}
        for i, row in enumerate(counts)
        for j, number in enumerate(row)
        if number
    ]
    if not cells:
        return None
    unit = alt.Scale(domain=[0, 1])
    chart = (
        alt.Chart(rows_of(cells))
        .mark_rect(fill=ACCENT)
        .encode(
            x=alt.X("a:Q", title=f"{found.a.soft} in a", scale=unit),
            x2="to_a:Q",
            y=alt.Y("b:Q", title=f"{found.b.soft} in b", scale=unit),
            y2="to_b:Q",
            opacity=alt.Opacity("prefixes:Q", scale=alt.Scale(type="log", range=[0.12, 1]), legend=None),
        )
    )
    diagonal = (
        alt.Chart(rows_of([{"x": 0, "y": 0}, {"x": 1, "y": 1}]))
        .mark_line(color=MUTED, strokeDash=[4, 4], strokeWidth=1.5)
        .encode(x="x:Q", y="y:Q")
    )
    return Figure(
        title="Values of b against those of a",
        reading="The darker, the more prefixes (on a logarithmic scale). On the dashed line nothing moved; below, b is lower.",
        svg=drawn(chart + diagonal, height=_LARGE),
        numbers=Table(
            heads=("a", "b", "prefixes"),
            rows=tuple(
                (f"{cell['a']:.2f}-{cell['to_a']:.2f}", f"{cell['b']:.2f}-{cell['to_b']:.2f}", f"{cell['prefixes']:,}")
                for cell in cells
            ),
            words=2,
        ),
    )


def by_position(found: Comparison) -> Figure | None:
    """Mean shift after each number of steps."""
    rows = [
        {
            "at": tables.span(part.first, part.last),
            "shift": part.shift.value,
            "low": part.shift.value if part.shift.low is None else part.shift.low,
            "high": part.shift.value if part.shift.high is None else part.shift.high,
        }
        for part in found.shift.by_position
    ]
    if not rows:
        return None
    x = alt.X("at:O", title="steps before", sort=None, axis=alt.Axis(labelAngle=0))
    base = alt.Chart(rows_of(rows))
    zero = alt.Chart(rows_of([{"zero": 0}])).mark_rule(color=LINE, strokeWidth=2).encode(y="zero:Q")
    bars = base.mark_rule(color=ACCENT, strokeWidth=2).encode(x=x, y=alt.Y("low:Q", title="b - a"), y2="high:Q")
    points = base.mark_point(filled=True, color=ACCENT, size=70, opacity=1).encode(x=x, y="shift:Q")
    return Figure(
        title="Shift by position",
        reading="Mean of b - a after so many steps, with its 95 % interval over problems; 0 is the bare problem.",
        svg=drawn(zero + bars + points, height=_LARGE),
        numbers=tables.positions(found),
    )
