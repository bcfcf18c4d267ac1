"""What the browsers of chains, of searches and of a rollout tree share: the form of their data, how it is packed, and the part
of the page that shows it.

An *entry* is a chain or a problem: its text, facts about it, and its trees. A tree has columns with one value for each node:
parents come before their children, and the first node is what stands before the first step. A tree without `parents` is a path.
The index has columns too, with one value for each entry: what the list shows, filters and sorts by.

Nothing of a run is in markup, style or script: text of a data set or a model is only in the data, and enters the page as text
nodes.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Template
from typing import NamedTuple

from pipeline.core.ids import content_id
from pipeline.display.document import Inset
from pipeline.display.embedded import BASE64, data_element, json_text, packed, part, rounded, script, shortened

DATA_BYTES = 10_500_000
"""Of all data in the page."""
BLOCK_BYTES = 300_000
"""A block of entries is packed as soon as it has this many characters."""
LIMITS = (4_000, 1_000, 250)
"""Characters of a text. Each entry has the first limit at which it fits."""
SHORT = 300
"""Characters of an answer, an id or a piece of evidence, at most."""
MOST_NODES = 5_000
"""Nodes of a tree, at most: more than a reader opens, and as many as a browser draws at once."""
OUTCOMES = {True: "right", False: "wrong", None: "open"}
"""Outcomes in words. Data have their first letters."""
MARKS = {1: "+", 0: "-", 2: "o", None: "?"}
"""Marks of labels in a column; a node without a label has a space."""
_BEGINNING = 160
"""Characters of a problem that the list shows."""
_FIRST_RATIO = 3.0
"""Assumed ratio of data to their compressed size, until some are compressed."""
_AHEAD = 0.05
"""Share of the page that the first entries may use before it is their turn."""
_INDEX_BYTES = 50
"""Bytes of an entry in the index, compressed, on average."""
_PACKAGE = "pipeline.analysis.browser"
_SCRIPTS = ("elements", "tree", "picture", "detail", "listing", "browser")

Detail = tuple[str, str] | tuple[str, str, str]
"""A name, a value, and the kind of value: an `answer`, which is searched too, a `code`, or one that `differs`."""


class Order(NamedTuple):
    """An order of the list, by a column of the index. `unknown` stands for a null in it."""

    label: str
    column: str
    descending: bool = True
    unknown: float = -1


class Browser(NamedTuple):
    """What a browser lists. `noun`: what an entry is. `files`: the tables that have all of it. `outcome`: whose outcome is
    filtered by. `menus`: the names, labels and choices of further filters; the index has the `marks` of each entry."""

    noun: str
    files: str
    intro: str
    outcome: str
    menus: tuple[tuple[str, str, Mapping[str, str]], ...]
    orders: Mapping[str, Order]

    def inset(self, data: "Blocks", listed: str, heading: str) -> Inset:
        """The part of the page. `listed`: which entries the page has, where it has not all."""
        filters = _filled(
            "filters.html",
            noun=self.noun,
            outcome=self.outcome,
            menus="\n".join(
                f'<label><span>{label}</span><select id="browser-{name}">{_options(choices)}</select></label>'
                for name, label, choices in self.menus
            ),
            sorts=_options({"input": "as in the input", **{name: order.label for name, order in self.orders.items()}}),
            no_drops="" if "drops" in data.index else "hidden",
        )
        signs = {
            name: (order.column, -1 if order.descending else 1, order.unknown) for name, order in self.orders.items()
        }
        elements = data.elements({"noun": self.noun, "menus": [name for name, *_ in self.menus], "orders": signs})
        return part_of(f"{self.intro} {listed}", self.files, elements, f"{self.noun}s", heading, filters)


class Blocks:
    """The data of a page with that many entries: blocks of them, each compressed as soon as it is full, and an index."""

    def __init__(self, entries: int) -> None:
        self._of = entries
        self.index: dict[str, list[object]] = {}
        self.shown = 0
        """Entries with more than what the index has."""
        self._added = self._waiting = self._size = self._raw = 0
        self._starts = [0]
        self._block: list[str] = []
        self._packed: list[bytes] = []

    def add(self, facts: Mapping[str, object], texts: Iterable[str], form: Callable[[int], str]) -> None:
        """Add an entry with its texts cut at the first of `LIMITS` at which it fits, or without them. `facts`: what the index
        says of it. `form`: the entry as JSON, by the limit."""
        self._added += 1
        for name, value in facts.items():
            self.index.setdefault(name, []).append(value)
        lengths, left = list(map(len, texts)), self.characters_left()
        limits = (limit for limit in LIMITS if sum(min(length, limit) for length in lengths) <= left)
        fitting = next((found for found in map(form, limits) if len(found) <= left), None)
        self.shown += fitting is not None
        self._block.append(fitting or "null")
        self._waiting += len(self._block[-1])
        if self._waiting >= BLOCK_BYTES:
            self.pack()

    def elements(self, about: Mapping[str, object]) -> str:
        """The script elements: the index, then blocks of entries by number. `about`: what else the index says."""
        if self._block:
            self.pack()
        index = packed(json_text({**about, "starts": self._starts[:-1], **self.index}))
        blocks = (data_element(f"browser-entries-{number}", block) for number, block in enumerate(self._packed))
        return "\n".join([data_element("browser-index", index), *blocks])

    def pack(self) -> None:
        """Compress the entries that wait."""
        self._packed.append(self._compressed(f"[{','.join(self._block)}]"))
        self._starts.append(self._added)
        self._block, self._waiting = [], 0

    def _compressed(self, text: str) -> bytes:
        data = packed(text)
        self._raw += len(text)
        self._size += len(data)
        return data

    def characters_left(self) -> float:
        """Characters before compression for the next entry: the share of the page of those so far, less what they used."""
        share = (DATA_BYTES / BASE64 - self._of * _INDEX_BYTES) * min(1.0, _AHEAD + self._added / self._of)
        ratio = self._raw / self._size if self._size else _FIRST_RATIO
        return (share - self._size) * ratio - self._waiting


class Chosen:
    """The places of the entries that a page lists: all, or as many as asked, those with the smallest hashes."""

    def __init__(self, total: int, most: int) -> None:
        ranked = (
            range(total) if total <= most else sorted(range(total), key=lambda place: content_id("shown", str(place)))
        )
        self.places = sorted(ranked[:most])

    def within(self, start: int, count: int) -> list[int]:
        """Those of `count` entries from `start` on, counted from there."""
        of = slice(bisect_left(self.places, start), bisect_left(self.places, start + count))
        return [place - start for place in self.places[of]]


def part_of(intro: str, files: str, data: str, anchor: str, heading: str, filters: str = "") -> Inset:
    """The part of a page that shows entries. `data`: its elements. Without `filters`, it is one entry, which is open."""
    return Inset(
        html=_filled("browser.html", intro=intro, files=files, filters=filters),
        css=part(_PACKAGE, "browser.css"),
        js=script([(_PACKAGE, f"{name}.js") for name in _SCRIPTS]),
        data=data,
        anchor=anchor,
        heading=heading,
    )


def beginning(identity: str, source: str | None, problem: str, outcome: bool | None, table: str) -> dict[str, object]:
    """What the index says of every entry."""
    return {
        "ids": identity,
        "sources": short(source or "", table),
        "problems": problem[:_BEGINNING],
        "outcomes": OUTCOMES[outcome][0],
    }


def entry(problem: str, facts: Sequence[Detail], trees: Sequence[Mapping[str, object]], **more: object) -> str:
    """An entry as JSON."""
    return json_text({"problem": problem, "facts": facts, "trees": trees, **more})


def nodes(**columns: object) -> dict[str, object]:
    """The columns of a tree without those that say nothing. Numbers have three decimals."""
    return {
        name: _three_decimals(column) if isinstance(column, list) else column
        for name, column in columns.items()
        if column
    }


def short(text: str, table: str) -> str:
    """An answer, an id or a piece of evidence. `table`: the one that has all of it."""
    return shortened(text, SHORT, table)


def _three_decimals(column: list[object]) -> list[object]:
    return [rounded(value) if isinstance(value, float) else value for value in column]


def _options(choices: Mapping[str, str]) -> str:
    return "\n".join(f'<option value="{value}">{label}</option>' for value, label in choices.items())


def _filled(name: str, **words: str) -> str:
    return Template(part(_PACKAGE, name)).substitute(words)
