"""What a page is made of: texts and figures, of which only `svg` and what a `Browser` holds are trusted to be markup."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A figure that is seen first. `note` says what it is made of."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of texts, one per head; those of the columns behind the first `words` ones are numbers, and stand to the right."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    words: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart, how it is read, and its numbers. `svg` is one `<svg>` element."""

    title: str
    reading: str
    svg: str
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
    """Markup, style, script and data elements of a part that brings its own; all four are put into the page as they are."""

    html: str
    css: str
    js: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """`facts` are names with values; `banners` say what a reader must know before anything else. `inset` has the section
    `Chains`."""

    title: str
    kind: str
    facts: tuple[tuple[str, str], ...] = ()
    banners: tuple[str, ...] = ()
    tiles: tuple[Tile, ...] = ()
    sections: tuple[Section, ...] = ()
    inset: Inset | None = None
    foot: tuple[str, ...] = ()
