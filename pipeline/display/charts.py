"""Charts of a document as Vega-Lite, in the colours of the page. Pure."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import altair as alt

from pipeline.display.document import Axis, Chart, ChartKind, Colour, Line, Mark, Scale

WIDTH = 400
HEIGHT = 230
"""Of a chart with its axes. A unit is a pixel wide; on a narrow screen the chart shrinks."""
_LARGE = 300
_BAR = 26
_BESIDE_BARS = 60
_FEW = 5
"""Counts up to this one have a tick each."""
TEXT: Final = "#a10005"
MUTED: Final = "#a10006"
LINE: Final = "#a10007"
PLACEHOLDERS = {
    Colour.right.value: "#a10001",
    Colour.wrong.value: "#a10002",
    Colour.uncertain.value: "#a10003",
    Colour.accent.value: "#a10004",
    Colour.text.value: TEXT,
    "muted": MUTED,
    "line": LINE,
}
"""Colours of the page's theme by name, as they stand in a chart until it is drawn."""
_UNIT = alt.Scale(domain=[0, 1])
_TENTHS = [0, 0.2, 0.4, 0.6, 0.8, 1]
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2])
"""Of the lines of groups, which colour alone would not tell apart."""
_LOOK: dict[str, Any] = {
    "aria": False,
    "autosize": {"type": "fit", "contains": "padding"},
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "padding": 2,
    "view": {"stroke": None},
    "axis": {
        "domainColor": LINE,
        "gridColor": LINE,
        "tickColor": LINE,
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 6,
        "labelLimit": 150,
        "tickCount": 5,
    },
    "axisX": {"grid": False},
    "axisY": {"domain": False, "ticks": False},
    "legend": {
        "orient": "top",
        "title": None,
        "labelColor": TEXT,
        "labelFontSize": 12,
        "symbolType": "square",
        "symbolSize": 90,
        "symbolOpacity": 1,
        "offset": 4,
        "padding": 0,
        # The reader's font may be wider than the one that texts were measured with.
        "columnPadding": 32,
    },
    "text": {"fill": TEXT, "fontSize": 11},
}


def vega_lite(chart: Chart, *, pressed: bool = False) -> dict[str, Any]:
    """The chart as data of Vega-Lite. `pressed`: each mark is a link to its query."""
    layers, height = _DRAWN[chart.kind](chart)
    whole = alt.layer(*layers) if len(layers) > 1 else layers[0]
    if pressed and any(mark.query for mark in chart.marks):
        whole = whole.encode(href="query:N")
    made: dict[str, Any] = whole.properties(width=WIDTH, height=height).to_dict()
    return {**made, "config": _LOOK}


def _histogram(chart: Chart) -> "Drawn":
    total: dict[float | str, float] = {}
    for mark in chart.marks:
        total[mark.x] = total.get(mark.x, 0) + (mark.y or 0)
    x = alt.X("x:Q", bin="binned", title=chart.x.title, axis=alt.Axis(tickCount=5), scale=_UNIT)
    y = alt.Y("y:Q", title=chart.y.title, axis=_counts(max(total.values(), default=0)))
    bars = _base(chart).mark_bar(binSpacing=1)
    return [bars.encode(x=x, x2="x_end:Q", y=y, color=_colour(chart), order=alt.Order("at:Q"))], HEIGHT


def _bars(chart: Chart) -> "Drawn":
    names = alt.Y("x:N", title=None, sort=None, axis=_names())
    x = alt.X("y:Q", title=chart.y.title, axis=_percents(), scale=_UNIT)
    bars = _base(chart).mark_bar(height=_BAR)
    height = _BESIDE_BARS + (_BAR + 14) * len({mark.x for mark in chart.marks})
    return [bars.encode(y=names, x=x, color=_colour(chart), order=alt.Order("at:Q"))], height


def _columns(chart: Chart) -> "Drawn":
    most = min(1.0, 1.1 * max((mark.y or 0 for mark in chart.marks), default=1))
    x = alt.X(
        "x:Q",
        title=chart.x.title,
        scale=alt.Scale(domain=[-0.05, 1.05]),
        axis=alt.Axis(values=_TENTHS, tickCount=len(_TENTHS), format=".1f"),
    )
    y = alt.Y("y:Q", title=None, axis=_percents(), scale=alt.Scale(domain=[0, most]))
    return [_base(chart).mark_bar(width=22).encode(x=x, y=y, color=_colour(chart))], HEIGHT


def _lines(chart: Chart) -> "Drawn":
    x, y, colour = _axis(alt.X, "x", chart.x), _axis(alt.Y, "y", chart.y), _colour(chart)
    groups = _shown(chart)
    # With the same domain as that of the colours, both have one legend.
    dashes = alt.Scale(domain=groups, range=list(_DASHES[: len(groups)]))
    base = _base(chart)
    line = base.mark_line(strokeWidth=2.5).encode(
        x=x, y=y, color=colour, strokeDash=alt.StrokeDash("group:N", scale=dashes)
    )
    # Bands are faint, so that all lines stay readable where bands overlap.
    band = base.mark_area(opacity=0.18).encode(x=x, y=_axis(alt.Y, "low", chart.y), y2="high:Q", color=colour)
    points = base.mark_point(size=30, filled=True, opacity=1).encode(x=x, y=y, color=colour)
    banded = any(mark.low is not None for mark in chart.marks)
    return [*_against(chart), *([band] if banded else []), line, *([points] if len(groups) > 1 else [])], HEIGHT


def _points(chart: Chart) -> "Drawn":
    across, along = ("y", alt.X) if chart.sideways else ("x", alt.Y)
    base = _base(chart).encode(
        color=_colour(chart), **{across: _axis(alt.Y if chart.sideways else alt.X, "x", chart.x)}
    )
    if chart.x.scale is Scale.names and len(chart.groups) > 1:
        base = base.encode(xOffset=alt.XOffset("group:N", sort=list(chart.groups)))
    value = "x" if chart.sideways else "y"
    rules = base.mark_rule(strokeWidth=2).encode(**{value: _axis(along, "low", chart.y), f"{value}2": "high:Q"})
    points = base.mark_point(size=70, filled=True, opacity=1).encode(**{value: _axis(along, "y", chart.y)})
    height = _BESIDE_BARS + _BAR * len({mark.x for mark in chart.marks}) if chart.sideways else _LARGE
    return [*_against(chart), rules, points], height


def _heat(chart: Chart) -> "Drawn":
    opacity = alt.Opacity("weight:Q", scale=alt.Scale(type="log", range=[0.12, 1]), legend=None)
    x, y = _axis(alt.X, "x", chart.x), _axis(alt.Y, "y", chart.y)
    cells = _base(chart).mark_rect(fill=PLACEHOLDERS["accent"], stroke=LINE, strokeWidth=0.5)
    return [cells.encode(x=x, x2="x_end:Q", y=y, y2="y_end:Q", opacity=opacity), *_against(chart)], _LARGE


Drawn = tuple[list[alt.Chart], int]
_DRAWN: Mapping[ChartKind, Callable[[Chart], Drawn]] = {
    ChartKind.histogram: _histogram,
    ChartKind.bars: _bars,
    ChartKind.columns: _columns,
    ChartKind.lines: _lines,
    ChartKind.points: _points,
    ChartKind.heat: _heat,
}


def _base(chart: Chart) -> alt.Chart:
    order = list(chart.groups)
    return alt.Chart(alt.InlineData(values=[_row(mark, order.index(mark.group)) for mark in chart.marks]))


def _row(mark: Mark, at: int) -> dict[str, Any]:
    names = ("x", "x_end", "y", "y_end", "low", "high", "group", "weight", "query")
    return {"at": at} | {name: value for name in names if (value := getattr(mark, name)) is not None}


def _colour(chart: Chart) -> Any:
    if len(chart.groups) == 1:
        (colour,) = chart.groups.values()
        return alt.value(PLACEHOLDERS[colour.value])
    shown = _shown(chart)
    colours = [PLACEHOLDERS[chart.groups[name].value] for name in shown]
    return alt.Color("group:N", scale=alt.Scale(domain=shown, range=colours))


def _shown(chart: Chart) -> list[str]:
    """The groups that have marks."""
    there = {mark.group for mark in chart.marks}
    return [name for name in chart.groups if name in there]


def _against(chart: Chart) -> list[alt.Chart]:
    """The line that the chart is read against."""
    if chart.line is None:
        return []
    last = 1 if chart.line is Line.diagonal else 0
    ends = alt.Chart(alt.InlineData(values=[{"x": 0, "y": 0}, {"x": 1, "y": last}]))
    if chart.line is Line.zero:
        return [ends.mark_rule(color=LINE, strokeWidth=2).encode(y="y:Q")]
    return [ends.mark_line(color=MUTED, strokeDash=[4, 4], strokeWidth=1.5).encode(x="x:Q", y="y:Q")]


def _axis(channel: Callable[..., Any], field: str, axis: Axis) -> Any:
    if axis.scale is Scale.names:
        names = _names() if channel is alt.Y else alt.Axis(labelAngle=0)
        return channel(f"{field}:N", title=axis.title or None, sort=None, axis=names)
    look: dict[str, Any] = {"scale": _UNIT} if axis.scale is Scale.unit else {}
    if axis.scale is Scale.counts:
        look["axis"] = alt.Axis(format="d", tickMinStep=1)
    return channel(f"{field}:Q", title=axis.title, **look)


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
