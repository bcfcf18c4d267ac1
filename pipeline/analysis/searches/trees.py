"""The searched problems of a run, unit by unit, each with its tree and the answers of its candidates: which steps were sampled
after which, how they were scored, and which path was taken.

Steps with equal texts after the same steps are one node here, although each draw has its own `node_id`: they have one score. So
a node says how often the search went through it, and the tree of many whole chains shows where they part.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from pipeline.core.records import Finish
from pipeline.core.table import Table
from pipeline.core.tables import CANDIDATES, SAMPLES, SEARCHES, STEP_SCORES
from pipeline.searches.base import Node
from pipeline.searches.ids import node_id, prefix_id, root_id
from pipeline.searches.log import FAILED_DRAW, given_nodes, root_of
from pipeline.storage.stored_search import StoredSearch
from pipeline.storage.units import UnitRef, unit_chains

SAMPLE_COLUMNS = (
    *("row", "sample_id", "node_id", "draw", "steps", "text", "step_ends", "token_ends", "finish", "ended", "answer"),
    *("verdict", "n_tokens"),
)
"""The columns of `samples` that a tree needs, and the row of their problem."""
SCORE_COLUMNS = ("row", "prefix_id", "score", "raw_score", "reliability", "fault")
"""Those of `stepscores`."""
_CANDIDATE_COLUMNS = ("row", "chain_id", "final_answer", "score", "verdict", "chosen")
Row = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class TreeNode:
    """A step, after the steps that lead to it. The root has no step.

    `parent`: its place among the nodes; None for the root. `depth`: number of steps up to here. `text`: without the white space
    around it. `score`, `raw_score`, `reliability` and `fault`: see `tables.STEP_SCORES`; all None where nobody asked for a
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
    were generated after the steps that the search kept."""

    nodes: tuple[TreeNode, ...]
    path: tuple[int, ...] = ()
    weakest: int | None = None
    discarded: int = 0


class AnswerOfChains(NamedTuple):
    """Candidates that state the same answer, letter by letter; None: those that state none. `best`: their highest score,
    `total`: the sum of their scores; None where none of them has a score."""

    answer: str | None
    chains: int
    best: float | None
    total: float | None
    verdict: str | None
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedProblem:
    """A problem. `search`: its row of `searches`. `answers`: those of its candidates, the most frequent first."""

    search: Row
    tree: Tree
    answers: tuple[AnswerOfChains, ...]


def searched_problems(stored: StoredSearch) -> Iterator[list[SearchedProblem]]:
    """The problems of each finished unit, in the order of the input. Raises StoreError for a missing or damaged file."""
    for unit in stored.units:
        if unit.unit_id in stored.wholes:
            yield _of_unit(stored, unit)


def _of_unit(stored: StoredSearch, unit: UnitRef) -> list[SearchedProblem]:
    samples = _by_row(stored, unit, SAMPLES, SAMPLE_COLUMNS)
    scores = _by_row(stored, unit, STEP_SCORES, SCORE_COLUMNS)
    candidates = _by_row(stored, unit, CANDIDATES, _CANDIDATE_COLUMNS)
    chains = {row["row"]: row for row in unit_chains(stored.storage, unit).to_pylist()}
    found = []
    for search in sorted(_rows(stored, unit, SEARCHES, None), key=lambda row: int(row["row"])):
        row, problem_id = search["row"], search["problem_id"]
        given = chains[row]
        ended = candidates[row]
        nodes = given_nodes(
            root_of(problem_id), problem_id, given["chain_id"], given["steps"] or (), given["final_answer"]
        )
        last = nodes[-1].node_id if nodes else None
        tree = tree_of(
            problem_id,
            samples[row],
            scores[row],
            given=nodes,
            given_verdict=next((each["verdict"] for each in ended if each["chain_id"] == last), None),
            chosen=next((each["chain_id"] for each in ended if each["chosen"]), None),
        )
        found.append(SearchedProblem(search=search, tree=tree, answers=answers_of(ended)))
    return found


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
    path, nodes = growing.path_to(chosen), tuple(growing.nodes)
    found = {row["prefix_id"]: row for row in scores}
    for node in nodes:
        if scored := found.get(node.prefix_id):
            node.score, node.raw_score, node.reliability, node.fault = (scored[name] for name in SCORE_COLUMNS[2:])
    for at in path:
        nodes[at].on_path = True
    return Tree(
        nodes=nodes,
        path=path,
        weakest=min(((score, at) for at in path if (score := nodes[at].score) is not None), default=(0.0, None))[1],
        discarded=growing.discarded,
    )


class _Tree:
    """See `tree_of`. `_at`: node id -> place of its node; `_after`: the places of the steps after each node, by their texts."""

    def __init__(self, problem_id: str, given: Sequence[Node], given_verdict: str | None) -> None:
        self._problem_id = problem_id
        self.nodes = [TreeNode(parent=None, depth=0, text="", prefix_id=prefix_id(problem_id, ()))]
        self._after: list[dict[str, int]] = [{}]
        self._at = {root_id(problem_id): 0}
        self.discarded = 0
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
        for node in reversed(self.nodes):
            if node.parent is not None:
                self.nodes[node.parent].visits += node.visits

    def path_to(self, chosen: str | None) -> tuple[int, ...]:
        """The places of the steps that lead to a node."""
        return tuple(self._above(0 if chosen is None else self._at.get(chosen, 0)))

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
        after = self._after[parent]
        if text not in after:
            after[text] = len(self.nodes)
            steps = (*(self.nodes[at].text for at in self._above(parent)), text)
            prefix = prefix_id(self._problem_id, steps)
            self.nodes.append(TreeNode(parent=parent, depth=len(steps), text=text, prefix_id=prefix))
            self._after.append({})
        return after[text]

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


def answers_of(candidates: Sequence[Row]) -> tuple[AnswerOfChains, ...]:
    """The answers of the rows of `candidates` of one problem."""
    by_answer: defaultdict[str | None, list[Row]] = defaultdict(list)
    for each in candidates:
        by_answer[each["final_answer"]].append(each)
    found = [_answer(answer, each) for answer, each in by_answer.items()]
    return tuple(sorted(found, key=lambda each: (-each.chains, -(each.best or 0.0))))


def _answer(answer: str | None, candidates: Sequence[Row]) -> AnswerOfChains:
    scores = [each["score"] for each in candidates if each["score"] is not None]
    return AnswerOfChains(
        answer=answer,
        chains=len(candidates),
        best=max(scores, default=None),
        total=sum(scores) if scores else None,
        verdict=next((each["verdict"] for each in candidates if each["verdict"] is not None), None),
        chosen=any(each["chosen"] for each in candidates),
    )


def _by_row(
    stored: StoredSearch, unit: UnitRef, table: Table[Any], columns: Sequence[str]
) -> defaultdict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in _rows(stored, unit, table, columns):
        found[row["row"]].append(row)
    return found


def _rows(stored: StoredSearch, unit: UnitRef, table: Table[Any], columns: Sequence[str] | None) -> list[Row]:
    return [row for each in stored.of_unit(unit.unit_id, table, columns) for row in each.to_pylist()]
