"""Small multiples as SVG: panels of points and lines on logarithmic axes, which all panels share. No fonts, no scripts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_PANEL_WIDTH, _PANEL_HEIGHT = 220.0, 170.0
_LEFT, _TOP, _GAP, _BOTTOM = 60.0, 40.0, 26.0, 84.0
_LEGEND_COLUMNS = 5
_TICKS = (1.0, 2.0, 5.0)
_COLOURS = ("#000000", "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999933", "#882255")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points (x, y), all above 0; joined by a line where they are one curve."""

    name: str
    points: tuple[tuple[float, float], ...]
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """Values to pixels: `low` lies at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        return [
            leading * 10.0**power
            for power in powers
            for leading in _TICKS
            if self.low <= leading * 10.0**power <= self.high
        ]


def svg(rows: Sequence[Sequence[Panel]], *, title: str, across: str, up: str) -> str:
    """The picture; a colour stands for the same name everywhere. `across` and `up` name the axes. Needs a point or more."""
    names = list(dict.fromkeys(series.name for row in rows for panel in row for series in panel.series))
    points = [point for row in rows for panel in row for series in panel.series for point in series.points]
    xs, ys = _around([x for x, _ in points]), _around([y for _, y in points])
    width = _LEFT + max(len(row) for row in rows) * (_PANEL_WIDTH + _GAP)
    height = _TOP + len(rows) * (_PANEL_HEIGHT + 2 * _GAP) + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
        f' height="{height:.0f}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
        _text(width / 2, _TOP / 2, title, size=15),
        _text(width / 2, height - _BOTTOM + 10, across, size=13),
        f'<g transform="translate(14 {(height - _BOTTOM) / 2:.0f}) rotate(-90)">{_text(0, 0, up, size=13)}</g>',
    ]
    for down, row in enumerate(rows):
        for right, panel in enumerate(row):
            left = _LEFT + right * (_PANEL_WIDTH + _GAP)
            top = _TOP + _GAP + down * (_PANEL_HEIGHT + 2 * _GAP)
            across_axis = _Axis(low=xs[0], high=xs[1], start=left, end=left + _PANEL_WIDTH)
            up_axis = _Axis(low=ys[0], high=ys[1], start=top + _PANEL_HEIGHT, end=top)
            parts += _frame(panel.title, across_axis, up_axis, labels_up=right == 0)
            for series in panel.series:
                parts += _drawn(series, _colour(names, series.name), across_axis, up_axis)
    parts += _legend(names, height - _BOTTOM + 30, width)
    return "\n".join([*parts, "</svg>", ""])


def _around(values: Sequence[float]) -> tuple[float, float]:
    return min(values) / 1.15, max(values) * 1.15


def _colour(names: Sequence[str], name: str) -> str:
    return _COLOURS[names.index(name) % len(_COLOURS)]


def _frame(title: str, across: _Axis, up: _Axis, *, labels_up: bool) -> list[str]:
    parts = [
        f'<rect class="frame" x="{across.start:.1f}" y="{up.end:.1f}" width="{across.end - across.start:.1f}"'
        f' height="{up.start - up.end:.1f}" fill="none" stroke="#888888"/>',
        _text((across.start + across.end) / 2, up.end - 6, title),
    ]
    for tick in across.ticks():
        x = across.at(tick)
        parts.append(_line((x, up.start), (x, up.end), "#eeeeee"))
        if math.isclose(math.log10(tick) % 1, 0, abs_tol=1e-9):
            parts.append(_text(x, up.start + 13, f"{tick:g}"))
    for tick in up.ticks():
        y = up.at(tick)
        parts.append(_line((across.start, y), (across.end, y), "#eeeeee"))
        if labels_up:
            parts.append(_text(across.start - 4, y + 4, f"{tick:g}", anchor="end"))
    return parts


def _drawn(series: Series, colour: str, across: _Axis, up: _Axis) -> list[str]:
    places = [(across.at(x), up.at(y)) for x, y in series.points]
    parts = []
    if series.joined:
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    for (x, y), (across_value, up_value) in zip(places, series.points, strict=True):
        shown = escape(f"{series.name}: {across_value:.4g}, {up_value:.3g}")
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"><title>{shown}</title></circle>')
    return parts


def _legend(names: Sequence[str], top: float, width: float) -> list[str]:
    parts = []
    for place, name in enumerate(names):
        row, column = divmod(place, _LEGEND_COLUMNS)
        x = _LEFT + column * (width - _LEFT) / _LEGEND_COLUMNS
        y = top + 16 * row
        parts.append(f'<rect x="{x:.1f}" y="{y - 8:.1f}" width="10" height="10" fill="{_colour(names, name)}"/>')
        parts.append(_text(x + 16, y + 1, name, anchor="start"))
    return parts


def _line(start: tuple[float, float], end: tuple[float, float], colour: str) -> str:
    return f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "middle", size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
