"""A chart as SVG that takes its colours from the page: drawn by Vega when the page is written, without
a browser or a network."""

import re
from collections.abc import Mapping
from typing import Any, Final

import altair as alt
import vl_convert

WIDTH = 400
HEIGHT = 230
"""Of a chart with its axes, in units that are as wide as a pixel where it has room; on a phone it shrinks."""
RIGHT: Final = "#a10001"
WRONG: Final = "#a10002"
UNDECIDED: Final = "#a10003"
ACCENT: Final = "#a10004"
TEXT: Final = "#a10005"
MUTED: Final = "#a10006"
LINE: Final = "#a10007"
SURFACE: Final = "#a10008"
"""Stand for the colours of the page's theme until the chart is drawn."""
_THEME = {
    RIGHT: "right",
    WRONG: "wrong",
    UNDECIDED: "undecided",
    ACCENT: "accent",
    TEXT: "text",
    MUTED: "muted",
    LINE: "line",
    SURFACE: "surface",
}
BY_OUTCOME = {"right": RIGHT, "wrong": WRONG, "open": UNDECIDED}
BY_LABEL = {"good": RIGHT, "bad": WRONG, "neutral": ACCENT, "undecided": UNDECIDED}
_NAMESPACES = re.compile(r' xmlns(:xlink)?="[^"]*"')
_SIZE = re.compile(r'^<svg [^>]*viewBox="([^"]*)"[^>]*>')
_LONG_FRACTION = re.compile(r"(\d\.\d{2})\d+")


def rows_of(values: list[dict[str, Any]]) -> alt.InlineData:
    """Data of a chart."""
    return alt.InlineData(values=values)


def scale(colours: Mapping[str, str], used: set[str]) -> alt.Scale:
    """Those of the colours that are used, in their order."""
    names = [name for name in colours if name in used]
    return alt.Scale(domain=names, range=[colours[name] for name in names])


def drawn(chart: alt.Chart | alt.LayerChart, *, height: int = HEIGHT) -> str:
    """One `<svg>` element, as wide as what it is put into. Raises ValueError for a chart that cannot be drawn."""
    spec = chart.properties(width=WIDTH, height=height).to_dict()
    svg = vl_convert.vegalite_to_svg({**spec, "config": _LOOK}, allowed_base_urls=[])
    for placeholder, name in _THEME.items():
        svg = svg.replace(placeholder, f"var(--{name})")
    # Chart names are given beside it, and HTML needs no namespaces.
    svg = _SIZE.sub(r'<svg viewBox="\1" aria-hidden="true" focusable="false">', _NAMESPACES.sub("", svg))
    return _LONG_FRACTION.sub(r"\1", svg)


_AXIS = {
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
}
_LOOK: dict[str, Any] = {
    "aria": False,
    "autosize": {"type": "fit", "contains": "padding"},
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "padding": 2,
    "view": {"stroke": None},
    "axis": _AXIS,
    "axisX": {"grid": False},
    "axisY": {"domain": False, "ticks": False},
    "legend": {
        "orient": "top",
        "title": None,
        "labelColor": TEXT,
        "labelFontSize": 12,
        "symbolType": "square",
        "symbolSize": 90,
        "offset": 4,
        "padding": 0,
        "columnPadding": 14,
    },
    "text": {"fill": TEXT, "fontSize": 11},
}
