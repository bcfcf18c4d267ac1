"""The tree of a searched problem: which steps were sampled after which, how they were scored, and which path was taken.

Steps with equal texts after the same steps are one node here, although each draw has its own `node_id`: they have one score. So
a node says how often the search went through it, and the tree of many whole chains shows where they part.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pipeline.core.records import Finish
from pipeline.searches.base import Node
from pipeline.searches.ids import node_id, prefix_id, root_id
from pipeline.searches.log import FAILED_DRAW

SAMPLE_COLUMNS = (
    *("row", "sample_id", "node_id", "draw", "steps", "text", "step_ends", "token_ends", "finish", "ended", "answer"),
    *("verdict", "n_tokens"),
)
"""The columns of `samples` that a tree needs, and the row of their problem."""
SCORE_COLUMNS = ("row", "prefix_id", "score", "raw_score", "reliability", "fault")
"""Those of `stepscores`."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """A step, after the steps that lead to it. The root has no step.

    `parent`: its place among the nodes; None for the root. `depth`: number of steps up to here. `text`: without the white space
    around it. `score`, `raw_score`, `reliability` and `fault`: see `schemas.STEP_SCORES`; all None where nobody asked for a
    score. `tokens`: generated for this step, in all samples of it. `visits`: samples that begin, pass or end here or below.
    `ends`: samples whose chain ends here; `cut`: those of them that a limit ended. `answer` and `verdict`: of these chains.
    `on_path`: whether the chosen chain goes through it. `given`: whether the chain that the input has goes through it.
    """

    parent: int | None
    depth: int
    text: str
    prefix_id: str
    score: float | None = None
    raw_score: float | None = None
    reliability: float | None = None
    fault: str | None = None
    tokens: int = 0
    visits: int = 0
    ends: int = 0
    cut: int = 0
    answer: str | None = None
    verdict: str | None = None
    on_path: bool = False
    given: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """`nodes`: the root first, each after its parent. `path`: the places of the chosen chain's steps, in order. `weakest`: the
    place of its step with the lowest score, the first of equal ones; None where no step has a score. `discarded`: tokens that
    were generated after the steps that the search kept. `unattached`: samples that follow no known node."""

    nodes: tuple[TreeNode, ...]
    path: tuple[int, ...] = ()
    weakest: int | None = None
    discarded: int = 0
    unattached: int = 0


@dataclass(slots=True)
class _Growing:
    """A node while the tree is built."""

    parent: int | None
    depth: int
    text: str
    prefix_id: str
    children: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    visits: int = 0
    ends: int = 0
    cut: int = 0
    answer: str | None = None
    verdict: str | None = None
    given: bool = False


def tree_of(
    problem_id: str,
    samples: Iterable[Row],
    scores: Iterable[Row],
    *,
    given: Sequence[Node] = (),
    given_verdict: str | None = None,
    chosen: str | None = None,
) -> Tree:
    """The tree of one problem. `samples` and `scores`: its rows of `samples` and `stepscores`. `given`: the nodes of the chain
    that the input has, see `searches.log.given_nodes`, and `given_verdict` that of its answer. `chosen`: id of the node that
    ends the chosen chain, if any."""
    growing = _Tree(problem_id, given, given_verdict)
    growing.add(samples)
    path = growing.path_to(chosen)
    found = {row["prefix_id"]: row for row in scores}
    on_path = set(path)
    nodes = tuple(_finished(node, found.get(node.prefix_id), at in on_path) for at, node in enumerate(growing.nodes))
    return Tree(
        nodes=nodes,
        path=path,
        weakest=min((at for at in path if nodes[at].score is not None), key=lambda at: _score(nodes[at]), default=None),
        discarded=growing.discarded,
        unattached=growing.unattached,
    )


class _Tree:
    """See `tree_of`. `at`: node id -> place of its node."""

    def __init__(self, problem_id: str, given: Sequence[Node], given_verdict: str | None) -> None:
        self._problem_id = problem_id
        self.nodes = [_Growing(None, 0, "", prefix_id(problem_id, ()))]
        self._at = {root_id(problem_id): 0}
        self.discarded = self.unattached = 0
        at = 0
        for node in given:
            at = self._child(at, node.text)
            self._at[node.node_id] = at
            self.nodes[at].given = at > 0
            if node.ended:
                self._end(at, node.answer, given_verdict, cut=False)

    def add(self, samples: Iterable[Row]) -> None:
        """Add samples, in whatever order."""
        waiting: defaultdict[str, list[Row]] = defaultdict(list)
        for row in samples:
            if row["draw"] != FAILED_DRAW:
                waiting[row["node_id"]].append(row)
        due = list(self._at)
        for known in due:
            for row in sorted(waiting.pop(known, ()), key=lambda row: (row["draw"], row["steps"])):
                due += self._sampled(row)
        self.unattached = sum(map(len, waiting.values()))
        for node in reversed(self.nodes):
            if node.parent is not None:
                self.nodes[node.parent].visits += node.visits

    def path_to(self, chosen: str | None) -> tuple[int, ...]:
        """The places of the steps that lead to a node."""
        at = None if chosen is None else self._at.get(chosen)
        path = []
        while at:
            path.append(at)
            at = self.nodes[at].parent
        return tuple(reversed(path))

    def _sampled(self, row: Row) -> list[str]:
        """Add the steps of a sample. Returns the ids of its nodes."""
        at = self._at[row["node_id"]]
        ids = []
        pieces = [row["text"][begin:end] for begin, end in pairwise((0, *row["step_ends"]))] or [""]
        counts = [end - begin for begin, end in pairwise((0, *row["token_ends"]))] or [0]
        for index, (text, tokens) in enumerate(zip(pieces, counts, strict=True)):
            at = self._child(at, text)
            self.nodes[at].tokens += tokens
            ids.append(node_id(row["sample_id"], index))
            self._at[ids[-1]] = at
        self.nodes[at].visits += 1
        self.discarded += row["n_tokens"] - sum(counts)
        if row["ended"]:
            self._end(at, row["answer"], row["verdict"], cut=row["finish"] != Finish.STOP)
        return ids

    def _child(self, parent: int, text: str) -> int:
        """The place of the step `text` after a node; that of the node itself for a blank step."""
        text = text.strip()
        if not text:
            return parent
        before = self.nodes[parent]
        if text not in before.children:
            before.children[text] = len(self.nodes)
            steps = [self.nodes[at].text for at in self._above(parent)]
            self.nodes.append(_Growing(parent, before.depth + 1, text, prefix_id(self._problem_id, [*steps, text])))
        return before.children[text]

    def _above(self, at: int) -> list[int]:
        path = []
        while at:
            path.append(at)
            at = self.nodes[at].parent or 0
        return path[::-1]

    def _end(self, at: int, answer: str | None, verdict: str | None, *, cut: bool) -> None:
        node = self.nodes[at]
        node.ends += 1
        node.cut += cut
        if node.answer is None:
            node.answer = answer
        if node.verdict is None:
            node.verdict = verdict


def _finished(node: _Growing, scored: Row | None, on_path: bool) -> TreeNode:
    found = scored or {}
    return TreeNode(
        parent=node.parent,
        depth=node.depth,
        text=node.text,
        prefix_id=node.prefix_id,
        score=found.get("score"),
        raw_score=found.get("raw_score"),
        reliability=found.get("reliability"),
        fault=found.get("fault"),
        tokens=node.tokens,
        visits=node.visits,
        ends=node.ends,
        cut=node.cut,
        answer=node.answer,
        verdict=node.verdict,
        on_path=on_path,
        given=node.given,
    )


def _score(node: TreeNode) -> float:
    return 2.0 if node.score is None else node.score
