"""The data in the page as JSON: an index with a few facts of every problem, and the problems with their trees.

The index has columns with one entry per problem. Scores have three decimals.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.analysis.searches.trees import AnswerOfChains, SearchedProblem, Tree, TreeNode
from pipeline.storage.stored_search import CANDIDATES, SAMPLES, SEARCHES

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
_DIGITS = 3
WEAK = 0.5
"""A step with a score below this may be marked as weak: it is more likely wrong than right."""
_OUTCOMES = {True: "r", False: "w", None: "o"}
_TRUST = {True: "t", False: "n", None: "-"}
NO_BLOCK = -1
"""Block of a problem whose tree is not in the page."""


class Index:
    """The index; problems are added one by one."""

    def __init__(self) -> None:
        self._columns: dict[str, list[object]] = {name: [] for name in _COLUMNS}

    def __len__(self) -> int:
        return len(self._columns["ids"])

    def add(self, problem: SearchedProblem, block: int, place: int) -> None:
        """`block` and `place`: where the problem's tree is."""
        found = problem.search
        entry: dict[str, object] = {
            "ids": found["problem_id"],
            "sources": cut(found["source_id"] or "", _SHORT, SEARCHES),
            "problems": found["problem"][:_BEGINNING],
            "outcomes": _OUTCOMES[found["outcome"]],
            "trust": _TRUST[found["trusted"]],
            "answers": None if found["final_answer"] is None else cut(found["final_answer"], _SHORT, SEARCHES),
            "confidence": _rounded(found["confidence"]),
            "score": _rounded(found["score"]),
            "stops": found["stopped"],
            "candidates": found["candidates"],
            "steps": len(problem.tree.nodes) - 1,
            "policy": found["policy_tokens"],
            "scorer": found["scorer_computed"],
            "blocks": block,
            "places": place,
        }
        for name, value in entry.items():
            self._columns[name].append(value)

    def json(self) -> str:
        """The whole index."""
        return _json(self._columns)


_COLUMNS = (
    *("ids", "sources", "problems", "outcomes", "trust", "answers", "confidence", "score", "stops", "candidates"),
    *("steps", "policy", "scorer", "blocks", "places"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedTree:
    """A tree of which the page has a part. `hidden`: steps that it does not have."""

    tree: Tree
    hidden: int = 0


def pruned(tree: Tree, most: int = MOST_NODES) -> PrunedTree:
    """A tree with at most `most` steps, but with the whole chosen path: the others are those that were visited most."""
    if len(tree.nodes) - 1 <= most:
        return PrunedTree(tree=tree)
    # A parent has no fewer visits than its child and stands before it, so no step is kept without those that lead to it.
    ranked = sorted(range(1, len(tree.nodes)), key=lambda at: (not tree.nodes[at].on_path, -tree.nodes[at].visits, at))
    kept = [0, *sorted(ranked[: max(most, len(tree.path))])]
    place = {old: new for new, old in enumerate(kept)}
    nodes = tuple(
        replace(tree.nodes[old], parent=None if (parent := tree.nodes[old].parent) is None else place[parent])
        for old in kept
    )
    weakest = None if tree.weakest is None else place[tree.weakest]
    part = replace(tree, nodes=nodes, path=tuple(place[at] for at in tree.path), weakest=weakest)
    return PrunedTree(tree=part, hidden=len(tree.nodes) - len(nodes))


def problem_json(problem: SearchedProblem, characters: int = CHARACTERS) -> str:
    """A problem with its tree; texts of steps are cut at `characters`. The root is the first node."""
    found, shown = problem.search, pruned(problem.tree)
    tree = shown.tree
    nodes = tree.nodes
    return _json(
        {
            "problem": cut(found["problem"], characters, SEARCHES),
            "gold": None if found["gold_answer"] is None else cut(found["gold_answer"], _SHORT, SEARCHES),
            "verdict": found["verdict"],
            "method": found["method"],
            "n": found["n"],
            "prompt": found["policy_prompt_tokens"],
            "read": found["scorer_tokens"],
            "unscored": found["unscored"],
            "seconds": round(found["seconds"], 1),
            "answers": [_answer(each) for each in problem.answers[:_ANSWERS]],
            "more": len(problem.answers) - _ANSWERS if len(problem.answers) > _ANSWERS else 0,
            "parents": [-1 if node.parent is None else node.parent for node in nodes],
            "texts": [cut(node.text, characters, _table_of(node)) for node in nodes],
            "given": [at for at, node in enumerate(nodes) if node.given],
            "scores": [_rounded(node.score) for node in nodes],
            "raw": [_rounded(node.raw_score) for node in nodes] if _calibrated(tree) else None,
            "sure": [_rounded(node.reliability) for node in nodes] if _has_reliability(tree) else None,
            "faults": {at: node.fault for at, node in enumerate(nodes) if node.fault},
            "tokens": [node.tokens for node in nodes],
            "visits": [node.visits for node in nodes],
            "ends": {
                at: [node.ends, node.cut, None if node.answer is None else cut(node.answer, _SHORT), node.verdict]
                for at, node in enumerate(nodes)
                if node.ends
            },
            "path": list(tree.path),
            "weakest": _weak(tree),
            "discarded": tree.discarded,
            "hidden": shown.hidden,
        }
    )


def cut(text: str, characters: int, table: str = SAMPLES) -> str:
    """The text, or its beginning and its full length. `table`: the one that has all of it."""
    if len(text) <= characters:
        return text
    return f"{text[:characters]} ... ({len(text):,} characters, full text in {table}/*.parquet)"


def _table_of(node: TreeNode) -> str:
    """The table that has the whole text of a step. No sample has a step of the chain of the input."""
    return CANDIDATES if node.given else SAMPLES


def _answer(found: AnswerOfChains) -> list[object]:
    answer = None if found.answer is None else cut(found.answer, _SHORT, CANDIDATES)
    return [answer, found.chains, _rounded(found.best), _rounded(found.total), found.verdict, found.chosen]


def _weak(tree: Tree) -> int | None:
    """The place of the chosen chain's weakest step, if that is weak."""
    score = None if tree.weakest is None else tree.nodes[tree.weakest].score
    return tree.weakest if score is not None and score < WEAK else None


def _calibrated(tree: Tree) -> bool:
    return any(None not in (node.raw_score, node.score) and node.raw_score != node.score for node in tree.nodes)


def _has_reliability(tree: Tree) -> bool:
    return any(node.reliability is not None for node in tree.nodes)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def _json(data: Mapping[str, object]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
