"""What a command shows: key figures, tables and charts in sections. Pure.

It says what there is to see, and not how it looks: `terminal` prints it, and `page` makes a file of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pipeline.core.statistics import Interval

GENERATOR = '<meta name="generator" content="stepvalue'
"""In the head of every page; it distinguishes pages from other files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A key figure: its name, its value as text, and `reading`, which explains it or says how sure it is."""

    name: str
    value: str
    reading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of texts, one text per head. Columns after the first `words` ones are numbers and aligned to the right. `title`: of
    a table that stands alone; `caption`: what a reader must know of its cells. `text`: the column that takes the width that is
    left, and is wrapped. `colours`: of cells with these texts.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    caption: str = ""
    words: int = 1
    text: int | None = None
    colours: Mapping[str, "Colour"] = field(default_factory=dict)


class ChartKind(Enum):
    """How a chart shows its marks."""

    histogram = "histogram"
    """Bars from `x` to `x_end`, as high as `y`; groups are stacked."""
    bars = "bars"
    """A bar for each name `x`, as long as the share `y`; groups are stacked."""
    columns = "columns"
    """A column at each `x`, as high as the share `y`."""
    lines = "lines"
    """A line through `y` for each group, in a band from `low` to `high` where there is one."""
    points = "points"
    """A point at `y` for each `x` and group, with a rule from `low` to `high`."""
    heat = "heat"
    """Cells from `x` to `x_end` and from `y` to `y_end`; the higher `weight` is, the darker (logarithmic)."""


class Colour(Enum):
    """Colours by what they mean; the theme of the page says what they are."""

    right = "right"
    wrong = "wrong"
    uncertain = "uncertain"
    accent = "accent"
    text = "text"


BY_OUTCOME = {"right": Colour.right, "wrong": Colour.wrong, "open": Colour.uncertain}
BY_LABEL = {"good": Colour.right, "bad": Colour.wrong, "neutral": Colour.accent, "uncertain": Colour.uncertain}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What one bar, point or cell of a chart shows; see `ChartKind`. A value that is None is not drawn. `query`: what lists
    the entries behind the mark, in the page's list; empty for a mark that cannot be pressed."""

    x: float | str
    x_end: float | None = None
    y: float | None
    y_end: float | None = None
    low: float | None = None
    high: float | None = None
    group: str = ""
    weight: float = 1.0
    query: str = ""

    @classmethod
    def of(cls, x: float | str, figure: Interval, group: str = "") -> "Mark":
        """A figure with its interval; without one, the value alone."""
        low, high = (figure.value if end is None else end for end in (figure.low, figure.high))
        return cls(x=x, y=figure.value, low=low, high=high, group=group)


class Scale(Enum):
    """What an axis of lines, points or cells measures; what bars and columns measure is known."""

    unit = "unit"
    """Numbers from 0 to 1."""
    counts = "counts"
    numbers = "numbers"
    names = "names"
    """Names in the order of the marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    title: str = ""
    scale: Scale = Scale.unit


class Line(Enum):
    """A line that a chart is read against."""

    diagonal = "diagonal"
    zero = "zero"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart, a text on how to read it, and its numbers. `groups`: colour of each group of marks, in their order. `sideways`:
    x goes down, as long names need. `line`: y = x, or y = 0, dashed."""

    title: str
    reading: str
    kind: ChartKind
    marks: tuple[Mark, ...]
    x: Axis
    y: Axis
    groups: Mapping[str, Colour] = field(default_factory=lambda: {"": Colour.accent})
    line: Line | None = None
    sideways: bool = False
    numbers: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Tables and charts under a heading; `anchor` is its id in the page."""

    anchor: str
    heading: str
    intro: str = ""
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()


Part = str | Table | Section
"""What a command prints, piece by piece: lines, tables, and sections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inset:
    """A part of a page with its own markup, style, script and data elements. All four are put into the page unchanged, as a
    section under a heading; `anchor` is its id in the page."""

    html: str
    css: str
    js: str
    data: str
    anchor: str = "chains"
    heading: str = "Chains"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """`details` are names with values. `verdict` answers in a sentence or two what there is, whether to trust it, and what to
    do next; `notes` say what a reader must know before the figures. The `inset` stands before the sections. `copies` are texts
    to be copied, by what they are."""

    title: str
    kind: str
    verdict: str = ""
    details: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    sections: tuple[Section, ...] = ()
    inset: Inset | None = None
    copies: tuple[tuple[str, str], ...] = ()
    foot: tuple[str, ...] = ()


def there(*charts: Chart | None) -> tuple[Chart, ...]:
    """The charts that have something to show."""
    return tuple(chart for chart in charts if chart is not None and any(mark.y is not None for mark in chart.marks))


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."
