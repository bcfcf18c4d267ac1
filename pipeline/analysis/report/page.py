"""A page as one HTML file: its parts, its charts, and the file. The page loads nothing, and only its own script can run in it.

The template escapes all texts; only charts and the parts of an `Inset` are trusted as markup. The content security policy in
the head allows the page's script by its hash, and forbids every request.

A chart is SVG in the colours of the page. Vega draws it when the page is written, without a browser or a network, in a process
of its own. Where that fails, a sentence says so.
"""

import base64
import hashlib
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import altair as alt
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline import __version__
from pipeline.analysis.report.charts import cleaned, drawn
from pipeline.core.statistics import Interval

_WEB = Path(__file__).parent / "web"
_TEMPLATE = "page.html.jinja"
GENERATOR = '<meta name="generator" content="stepvalue'
"""In the head of every page; it distinguishes pages from other files."""
WIDTH = 400
HEIGHT = 230
"""Of a chart with its axes. A unit is a pixel wide; on a narrow screen the chart shrinks."""
RIGHT: Final = "#a10001"
WRONG: Final = "#a10002"
UNCERTAIN: Final = "#a10003"
ACCENT: Final = "#a10004"
TEXT: Final = "#a10005"
MUTED: Final = "#a10006"
LINE: Final = "#a10007"
SURFACE: Final = "#a10008"
"""Placeholders, which the colours of the page's theme replace once the chart is drawn."""
_THEME = {
    RIGHT: "right",
    WRONG: "wrong",
    UNCERTAIN: "uncertain",
    ACCENT: "accent",
    TEXT: "text",
    MUTED: "muted",
    LINE: "line",
    SURFACE: "surface",
}
BY_OUTCOME = {"right": RIGHT, "wrong": WRONG, "open": UNCERTAIN}
BY_LABEL = {"good": RIGHT, "bad": WRONG, "neutral": ACCENT, "uncertain": UNCERTAIN}
_NAMESPACES = re.compile(r' xmlns(:xlink)?="[^"]*"')
_SIZE = re.compile(r'^<svg [^>]*viewBox="([^"]*)"[^>]*>')
_TAG = re.compile("<[^>]*>")
_LONG_FRACTION = re.compile(r"(\d\.\d{2})\d+")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A key figure at the top of the page. `note` explains it."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of texts, one text per head. Columns after the first `words` ones are numbers and aligned to the right."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    words: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart (see `chart_of`), a text on how to read it, and its numbers."""

    title: str
    reading: str
    chart: str
    numbers: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Charts and tables under a heading; `anchor` is its id in the page."""

    anchor: str
    heading: str
    intro: str = ""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inset:
    """A part with its own markup, style, script and data elements. All four are put into the page unchanged, as a section under
    a heading; `anchor` is its id in the page."""

    html: str
    css: str
    js: str
    data: str
    anchor: str = "chains"
    heading: str = "Chains"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """`details` are names with values. `banners` say what a reader must know before the figures. `inset` is the last
    section."""

    title: str
    kind: str
    details: tuple[tuple[str, str], ...] = ()
    banners: tuple[str, ...] = ()
    tiles: tuple[Tile, ...] = ()
    sections: tuple[Section, ...] = ()
    inset: Inset | None = None
    foot: tuple[str, ...] = ()


def format_time(seconds: float) -> str:
    """A point in time, given in seconds since 1970, as date and minute in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def foot(command: str, given: Mapping[str, object]) -> tuple[str, ...]:
    """How a page is made: the version, the time, and the command with the settings that are not None."""
    words = (f"{key}={value}" for key, value in given.items() if value is not None)
    made = shlex.join(["python", "-m", "pipeline", command, *words])
    return (f"stepvalue {__version__}, {format_time(time.time())} UTC", made)


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def html(page: Page) -> bytes:
    """The page as the content of an HTML file."""
    templates = Environment(
        loader=FileSystemLoader(_WEB), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    inset = page.inset
    script = "\n".join([_part("page.js"), *([inset.js] if inset else [])])
    style = "\n".join([_part("theme.css"), *([inset.css] if inset else [])])
    figures = [figure for section in page.sections for figure in section.figures]
    svgs = [Markup(_TAG.sub(_styled, svg)) for svg in drawn([figure.chart for figure in figures])]
    text = templates.get_template(_TEMPLATE).render(
        page=page,
        # The following parts are trusted as markup, see the module.
        script=Markup(script),
        style=Markup(style),
        svgs=dict(zip(figures, svgs, strict=True)),
        inset_html=Markup(inset.html if inset else ""),
        inset_data=Markup(inset.data if inset else ""),
        policy=_policy(script),
    )
    return text.encode("utf-8", "replace")


def rows_of(values: list[dict[str, Any]]) -> alt.InlineData:
    """Rows as data of a chart."""
    return alt.InlineData(values=values)


def scale(colours: Mapping[str, str], used: set[str]) -> alt.Scale:
    """A colour scale of the `used` names, in the order of `colours`."""
    names = [name for name in colours if name in used]
    return alt.Scale(domain=names, range=[colours[name] for name in names])


def diagonal() -> alt.Chart:
    """The line on which both axes, from 0 to 1, are equal."""
    chart: alt.Chart = (
        alt.Chart(rows_of([{"x": 0, "y": 0}, {"x": 1, "y": 1}]))
        .mark_line(color=MUTED, strokeDash=[4, 4], strokeWidth=1.5)
        .encode(x="x:Q", y="y:Q")
    )
    return chart


def ends(figure: Interval) -> dict[str, float | None]:
    """A figure as a row of a chart. Without an interval, this is the value alone."""
    low, high = (figure.value if end is None else end for end in (figure.low, figure.high))
    return {"value": figure.value, "low": low, "high": high}


def figure_tile(name: str, figure: Interval, note: str | None = None) -> Tile:
    """A tile of a figure. `note`: instead of its interval."""
    reach = "" if figure.low is None else f"{figure.low:.3f} to {figure.high:.3f}"
    value = "-" if figure.value is None else f"{figure.value:.3f}"
    return Tile(name=name, value=value, note=reach if note is None else note)


def chart_of(chart: alt.Chart | alt.LayerChart, *, height: int = HEIGHT) -> str:
    """The chart for a figure, as wide as its container."""
    return cleaned({**chart.properties(width=WIDTH, height=height).to_dict(), "config": _LOOK})


def _styled(tag: re.Match[str]) -> str:
    """A tag of a chart in the colours of the page, without the names that the page gives it already."""
    text = _NAMESPACES.sub("", tag[0])
    for placeholder, name in _THEME.items():
        text = text.replace(placeholder, f"var(--{name})")
    return _LONG_FRACTION.sub(r"\1", _SIZE.sub(r'<svg viewBox="\1" aria-hidden="true" focusable="false">', text))


def _part(name: str) -> str:
    return (_WEB / name).read_text("utf-8")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest}'",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{what} {where}" for what, where in allowed.items())
