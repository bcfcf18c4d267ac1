"""The problems of a run of `search` with their trees as parts of a page: markup, style, script, and compressed data.

Nothing of a run is in html, css or js: text of a data set or a model is only in the data, and enters the page as text nodes.
Every listed problem is in the index. Trees are packed as long as they fit; each part of the input has its share of the page.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.analysis.report.embedded import BASE64, data_element, packed, part, script
from pipeline.analysis.report.page import Inset
from pipeline.analysis.searches.browser.data import CHARACTERS, NO_BLOCK, Index, problem_json
from pipeline.analysis.searches.trees import SearchedProblem
from pipeline.core.ids import content_id

DATA_BYTES = 10_500_000
"""Of all data in the page."""
BLOCK_BYTES = 200_000
"""A block of problems is packed as soon as it has this many characters."""
_SHORTER = 200
"""Characters of a step where a problem does not fit otherwise."""
_FIRST_RATIO = 3.0
"""Assumed ratio of problems to their compressed size, until some are compressed."""
_AHEAD = 0.05
"""Share of the page that the first problems may use before it is their turn."""
_OURS, _SHARED = "pipeline.analysis.searches.browser", "pipeline.analysis.report.browser"
_SCRIPTS = (
    *((_SHARED, f"{name}.js") for name in ("elements", "listing", "keys", "treeview")),
    *((_OURS, f"{name}.js") for name in ("problems", "tree", "picture", "rows", "detail", "searches")),
)
ANCHOR = "problems"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBrowser:
    """`inset`: the part of the page. It lists `listed` of the run's `total` problems, and has the trees of `trees` of them."""

    inset: Inset
    listed: int
    trees: int
    total: int


def build_search_browser(units: Iterable[list[SearchedProblem]], total: int, most: int) -> SearchBrowser:
    """The browser of a run with `total` problems, of which it lists at most `most`, chosen by the hashes of their rows."""
    chosen = None if total <= most else _chosen(total, most)
    data = _Data(min(total, most))
    place = 0
    for unit in units:
        for problem in unit:
            if chosen is None or place in chosen:
                data.add(problem)
            place += 1
    return SearchBrowser(
        inset=Inset(
            html=_html(data.listed, data.trees, total),
            css="\n".join([part(_SHARED, "browser.css"), part(_SHARED, "tree.css"), part(_OURS, "searches.css")]),
            js=script(_SCRIPTS),
            data=data.elements(),
            anchor=ANCHOR,
            heading="Problems",
        ),
        listed=data.listed,
        trees=data.trees,
        total=total,
    )


def _chosen(total: int, most: int) -> frozenset[int]:
    ranked = sorted(range(total), key=lambda place: content_id("shown", str(place)))
    return frozenset(ranked[:most])


class _Data:
    """Blocks of problems, compressed as soon as they are full. `listed`: problems so far, `trees`: those with a tree."""

    def __init__(self, problems: int) -> None:
        self._of = problems
        self._index = Index()
        self._block: list[str] = []
        self._packed: list[bytes] = []
        self._size = self._raw = 0
        self.trees = 0

    @property
    def listed(self) -> int:
        return len(self._index)

    def add(self, problem: SearchedProblem) -> None:
        """Add a problem, with its tree if it fits."""
        for characters in (CHARACTERS, _SHORTER):
            text = problem_json(problem, characters)
            if len(text) <= self._characters_left():
                self._index.add(problem, len(self._packed), len(self._block))
                self._block.append(text)
                self.trees += 1
                break
        else:
            self._index.add(problem, NO_BLOCK, 0)
        if sum(map(len, self._block)) >= BLOCK_BYTES:
            self._pack()

    def elements(self) -> str:
        """The script elements: the index, then blocks of problems by number."""
        if self._block:
            self._pack()
        return "\n".join(
            [
                data_element("problems-index", packed(self._index.json())),
                *(data_element(f"problems-{number}", block) for number, block in enumerate(self._packed)),
            ]
        )

    def _pack(self) -> None:
        text = f"[{','.join(self._block)}]"
        self._packed.append(packed(text))
        self._raw += len(text)
        self._size += len(self._packed[-1])
        self._block = []

    def _characters_left(self) -> float:
        """Characters for the next problem: the share of the page of the problems so far, less what they used."""
        share = DATA_BYTES / BASE64 * min(1.0, _AHEAD + (len(self._index) + 1) / self._of)
        ratio = self._raw / self._size if self._size else _FIRST_RATIO
        return (share - self._size) * ratio - sum(map(len, self._block))


def _html(listed: int, trees: int, total: int) -> str:
    some = []
    if listed < total:
        some.append(
            f"This page lists {listed:,} of the run's {total:,} problems, chosen by hashes; searches/*.parquet has all."
        )
    if trees < listed:
        some.append(f"It has the trees of {trees:,} of them; samples/*.parquet has all.")
    return part(_OURS, "searches.html").replace("{part}", " ".join(some))
