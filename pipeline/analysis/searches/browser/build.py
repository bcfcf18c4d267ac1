"""The problems of a run of `search` with their trees as parts of a page: markup, style, script, and compressed data.

Nothing of a run is in html, css or js: text of a data set or a model is only in the data, and enters the page as text nodes.
The data are JSON: an index with a few facts of every listed problem, one entry in each of its columns, and blocks of problems
with their trees. Trees are packed as long as they fit; each part of the input has its share of the page. Scores have three
decimals.
"""

from collections.abc import Iterable
from dataclasses import replace

from pipeline.analysis.searches.trees import AnswerOfChains, ProblemTree, SearchedProblem
from pipeline.core.ids import content_id
from pipeline.core.tables import CANDIDATES, SAMPLES, SEARCHES
from pipeline.display.document import Inset
from pipeline.display.embedded import BASE64, data_element, json_text, packed, part, rounded, script, shortened

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
CHARACTERS = 2_000
"""Of a step's text, at most. The whole text is in the tables."""
MOST_NODES = 5_000
"""Steps of a tree, at most: more than a reader opens, and as many as a browser draws at once."""
_BEGINNING = 160
"""Characters of a problem that the list shows."""
_SHORT = 300
"""Characters of an answer or an id, at most."""
_ANSWERS = 12
"""Answers of a problem, at most."""
WEAK = 0.5
"""A step with a score below this may be marked as weak: it is more likely wrong than right."""
_OUTCOMES = {True: "r", False: "w", None: "o"}
_TRUST = {True: "t", False: "n", None: "-"}
NO_BLOCK = -1
"""Block of a problem whose tree is not in the page."""


def build_search_browser(units: Iterable[list[SearchedProblem]], total: int, most: int) -> Inset:
    """The part of the page of a run with `total` problems, of which it lists at most `most`, chosen by the hashes of their
    rows."""
    chosen = None if total <= most else _chosen(total, most)
    data = _Data(min(total, most))
    place = 0
    for unit in units:
        for problem in unit:
            if chosen is None or place in chosen:
                data.add(problem)
            place += 1
    return Inset(
        html=_html(len(data.index), data.trees, total),
        css="\n".join([part(_SHARED, "browser.css"), part(_SHARED, "tree.css"), part(_OURS, "searches.css")]),
        js=script(_SCRIPTS),
        data=data.elements(),
        anchor=ANCHOR,
        heading="Problems",
    )


def _chosen(total: int, most: int) -> frozenset[int]:
    ranked = sorted(range(total), key=lambda place: content_id("shown", str(place)))
    return frozenset(ranked[:most])


class _Data:
    """Blocks of problems, compressed as soon as they are full. `index`: of the problems so far; `trees`: those with a tree."""

    def __init__(self, problems: int) -> None:
        self._of = problems
        self.index: list[dict[str, object]] = []
        self.trees = 0
        self._block: list[str] = []
        self._packed: list[bytes] = []
        self._size = self._raw = 0

    def add(self, problem: SearchedProblem) -> None:
        """Add a problem, with its tree if it fits."""
        texts = (problem_json(problem, characters) for characters in (CHARACTERS, _SHORTER))
        fitting = next((text for text in texts if len(text) <= self._characters_left()), None)
        if fitting is None:
            self.index.append(index_entry(problem, NO_BLOCK, 0))
            return
        self.index.append(index_entry(problem, len(self._packed), len(self._block)))
        self.trees += 1
        self._block.append(fitting)
        if sum(map(len, self._block)) >= BLOCK_BYTES:
            self._pack()

    def elements(self) -> str:
        """The script elements: the index, then blocks of problems by number."""
        if self._block:
            self._pack()
        columns = {name: [entry[name] for entry in self.index] for name in self.index[0]}
        blocks = (data_element(f"problems-{number}", block) for number, block in enumerate(self._packed))
        return "\n".join([data_element("problems-index", packed(json_text(columns))), *blocks])

    def _pack(self) -> None:
        text = f"[{','.join(self._block)}]"
        self._packed.append(packed(text))
        self._raw += len(text)
        self._size += len(self._packed[-1])
        self._block = []

    def _characters_left(self) -> float:
        """Characters for the next problem: the share of the page of the problems so far, less what they used."""
        share = DATA_BYTES / BASE64 * min(1.0, _AHEAD + (len(self.index) + 1) / self._of)
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


def index_entry(problem: SearchedProblem, block: int, place: int) -> dict[str, object]:
    """What the index says of a problem. `block` and `place`: where its tree is."""
    found = problem.search
    return {
        "ids": found["problem_id"],
        "sources": shortened(found["source_id"] or "", _SHORT, SEARCHES.name),
        "problems": found["problem"][:_BEGINNING],
        "outcomes": _OUTCOMES[found["outcome"]],
        "trust": _TRUST[found["trusted"]],
        "answers": _short(found["final_answer"], SEARCHES.name),
        "confidence": rounded(found["confidence"]),
        "stops": found["stopped"],
        "steps": len(problem.tree.nodes) - 1,
        "policy": found["policy_tokens"],
        "scorer": found["scorer_computed"],
        "blocks": block,
        "places": place,
    }


def pruned(tree: ProblemTree, most: int = MOST_NODES) -> ProblemTree:
    """A tree with at most `most` steps, but with the whole chosen path: the others are those that were visited most."""
    if len(tree.nodes) - 1 <= most:
        return tree
    # A parent has no fewer visits than its child and stands before it, so no step is kept without those that lead to it.
    ranked = sorted(range(1, len(tree.nodes)), key=lambda at: (not tree.nodes[at].on_path, -tree.nodes[at].visits, at))
    kept = [0, *sorted(ranked[: max(most, len(tree.path))])]
    place = {old: new for new, old in enumerate(kept)}
    nodes = tuple(
        replace(tree.nodes[old], parent=None if (parent := tree.nodes[old].parent) is None else place[parent])
        for old in kept
    )
    weakest = None if tree.weakest is None else place[tree.weakest]
    return replace(tree, nodes=nodes, path=tuple(place[at] for at in tree.path), weakest=weakest)


def problem_json(problem: SearchedProblem, characters: int = CHARACTERS) -> str:
    """A problem with its tree; texts of steps are cut at `characters`. The root is the first node."""
    found, tree = problem.search, pruned(problem.tree)
    nodes = tree.nodes
    return json_text(
        {
            "problem": shortened(found["problem"], characters, SEARCHES.name),
            "gold": _short(found["gold_answer"], SEARCHES.name),
            "verdict": found["verdict"],
            "prompt": found["policy_prompt_tokens"],
            "read": found["scorer_tokens"],
            "unscored": found["unscored"],
            "seconds": round(found["seconds"], 1),
            "answers": [_answer(each) for each in problem.answers[:_ANSWERS]],
            "more": len(problem.answers) - _ANSWERS if len(problem.answers) > _ANSWERS else 0,
            "parents": [-1 if node.parent is None else node.parent for node in nodes],
            # Cut texts name the table that has the whole one. No sample has a step of the chain of the input.
            "texts": [shortened(node.text, characters, (CANDIDATES if node.given else SAMPLES).name) for node in nodes],
            "given": [at for at, node in enumerate(nodes) if node.given],
            "scores": [rounded(node.score) for node in nodes],
            "raw": [rounded(node.raw_score) for node in nodes] if _calibrated(tree) else None,
            "sure": [rounded(node.reliability) for node in nodes]
            if any(node.reliability is not None for node in tree.nodes)
            else None,
            "faults": {at: node.fault for at, node in enumerate(nodes) if node.fault},
            "tokens": [node.tokens for node in nodes],
            "visits": [node.visits for node in nodes],
            "ends": {
                at: [node.ends, node.cut, _short(node.answer, SAMPLES.name), node.verdict]
                for at, node in enumerate(nodes)
                if node.ends
            },
            "path": list(tree.path),
            "weakest": _weak(tree),
            "discarded": tree.discarded,
            "hidden": len(problem.tree.nodes) - len(nodes),
        }
    )


def _short(text: str | None, table: str) -> str | None:
    return None if text is None else shortened(text, _SHORT, table)


def _answer(found: AnswerOfChains) -> AnswerOfChains:
    answer = _short(found.answer, CANDIDATES.name)
    return found._replace(answer=answer, best=rounded(found.best), total=rounded(found.total))


def _weak(tree: ProblemTree) -> int | None:
    """The place of the chosen chain's weakest step, if that is weak."""
    score = None if tree.weakest is None else tree.nodes[tree.weakest].score
    return tree.weakest if score is not None and score < WEAK else None


def _calibrated(tree: ProblemTree) -> bool:
    return any(None not in (node.raw_score, node.score) and node.raw_score != node.score for node in tree.nodes)
