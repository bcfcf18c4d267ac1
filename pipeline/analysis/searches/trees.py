"""The searched problems of a run, unit by unit, each with its tree and the answers of its candidates: which steps were sampled
after which, how they were scored, and which path was taken.

Steps with equal texts after the same steps are one node here, although each draw has its own `node_id`: they have one score. So
a node says how often the search went through it, and the tree of many whole chains shows where they part.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from pipeline.core.formatting import printable
from pipeline.core.records import ChainText
from pipeline.core.shown import Shown
from pipeline.core.table import Table
from pipeline.core.tables import CANDIDATES, CHAINS, SAMPLES, SEARCHES, STEP_SCORES, SampleAnswer, ScoreAnswer
from pipeline.searches.base import Node, path_of
from pipeline.searches.log import first_nodes, followed
from pipeline.storage.stored_search import StoredSearch
from pipeline.storage.units import UnitRef, unit_chains

_SAMPLE_COLUMNS = (
    *("row", "sample_id", "node_id", "draw", "steps", "text", "step_ends", "token_ends", "finish", "ended", "answer"),
    *("verdict", "n_tokens"),
)
_SCORE_COLUMNS = ("row", "prefix_id", "score", "raw_score", "reliability", "fault")
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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProblemTree(Shown):
    """The tree of a problem's search: each step once, after the steps that lead to it. A shell or a notebook shows it as an
    outline, in which `*` marks the steps of the chosen chain.

    `nodes`: the problem itself first, without a step, and each node after its `parent`, the place of that among the nodes;
    `pipeline.analysis.searches.trees.TreeNode` says what each has.
    `path`: the places of the chosen chain's steps, in order. `weakest`: the place of the one with the lowest score, the first
    of equal ones; None where no step has a score. `discarded`: tokens that were generated after the steps that the search
    kept."""

    problem: str
    nodes: tuple[TreeNode, ...]
    path: tuple[int, ...] = ()
    weakest: int | None = None
    discarded: int = 0

    def frame(self) -> pl.DataFrame:
        """The nodes as a frame, one row for each, in their order."""
        return pl.DataFrame([asdict(node) for node in self.nodes], infer_schema_length=None)

    def _shown_lines(self) -> Iterator[str]:
        yield printable(self.problem)
        below: dict[int, list[int]] = {}
        for at, node in enumerate(self.nodes[1:], start=1):
            below.setdefault(node.parent or 0, []).append(at)
        waiting = below.get(0, [])[::-1]
        while waiting:
            at = waiting.pop()
            yield self._line(at)
            waiting += below.get(at, [])[::-1]

    def _line(self, at: int) -> str:
        node = self.nodes[at]
        score = " -  " if node.score is None else f"{node.score:.2f}"
        weakest = "  (the weakest step)" if at == self.weakest else ""
        answer = f"  -> {printable(node.answer)}" if node.answer is not None else ""
        taken = "*" if node.on_path else " "
        return f"{taken} {score} {node.visits:>4}x {'  ' * (node.depth - 1)}{printable(node.text)}{answer}{weakest}"


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
    tree: ProblemTree
    answers: tuple[AnswerOfChains, ...]


def searched_problems(stored: StoredSearch) -> Iterator[list[SearchedProblem]]:
    """The problems of each finished unit, in the order of the input. Raises StoreError for a missing or damaged file."""
    for unit in stored.units:
        if unit.unit_id in stored.wholes:
            yield _of_unit(stored, unit)


def _of_unit(stored: StoredSearch, unit: UnitRef) -> list[SearchedProblem]:
    samples = _by_row(SAMPLES, stored.of_unit(unit.unit_id, SAMPLES, _SAMPLE_COLUMNS))
    scores = _by_row(STEP_SCORES, stored.of_unit(unit.unit_id, STEP_SCORES, _SCORE_COLUMNS))
    problems = {problem.row: problem for problem in CHAINS.from_table(unit_chains(stored.storage, unit))}
    candidates: defaultdict[int, list[Row]] = defaultdict(list)
    for each in _rows(stored, unit, CANDIDATES, _CANDIDATE_COLUMNS):
        candidates[each["row"]].append(each)
    found = []
    for search in sorted(_rows(stored, unit, SEARCHES, None), key=lambda row: int(row["row"])):
        row = search["row"]
        tree = tree_of(problems[row], samples[row], scores[row], candidates[row])
        found.append(SearchedProblem(search=search, tree=tree, answers=answers_of(candidates[row])))
    return found


def tree_of(
    problem: ChainText,
    samples: Iterable[SampleAnswer],
    scores: Iterable[ScoreAnswer] = (),
    candidates: Sequence[Row] = (),
) -> ProblemTree:
    """The tree of one problem, from its answers in whatever order, and its rows of `candidates`."""
    verdicts = {each["chain_id"]: each["verdict"] for each in candidates}
    growing = _Tree()
    first = first_nodes(problem)
    for node in first:
        growing.add(node).given = node is not first[0]
        if node.ended:
            growing.end(node, verdicts.get(node.node_id))
    discarded = 0
    for sample, made in followed(problem, first, samples):
        for node in made:
            growing.add(node)
        growing.at(made[-1]).visits += 1
        discarded += sample.n_tokens - sum(node.n_tokens for node in made)
        if sample.ended:
            growing.end(made[-1], sample.verdict and sample.verdict.value)
    nodes = growing.nodes
    for at in reversed(nodes):
        if at.parent is not None:
            nodes[at.parent].visits += at.visits
    known = {each.prefix_id: each for each in scores}
    for at in nodes:
        if scored := known.get(at.prefix_id):
            at.score, at.raw_score = scored.score, scored.raw_score
            at.reliability, at.fault = scored.reliability, scored.fault
    path = growing.path_to(next((each["chain_id"] for each in candidates if each["chosen"]), None))
    for place in path:
        nodes[place].on_path = True
    return ProblemTree(
        problem=problem.problem,
        nodes=tuple(nodes),
        path=path,
        weakest=min(((score, at) for at in path if (score := nodes[at].score) is not None), default=(0.0, None))[1],
        discarded=discarded,
    )


class _Tree:
    """The nodes of a tree that grows; those of the log with equal `prefix_id`s are one."""

    def __init__(self) -> None:
        self.nodes: list[TreeNode] = []
        self._places: dict[str, int] = {}
        self._known: dict[str, Node] = {}

    def add(self, node: Node) -> TreeNode:
        """Add a node of the log, after its parent."""
        self._known[node.node_id] = node
        if node.prefix_id not in self._places:
            parent = None if node.parent is None else self._places[node.parent.prefix_id]
            self._places[node.prefix_id] = len(self.nodes)
            made = TreeNode(parent=parent, depth=node.depth, text=node.text.strip(), prefix_id=node.prefix_id)
            self.nodes.append(made)
        found = self.at(node)
        found.tokens += node.n_tokens
        return found

    def at(self, node: Node) -> TreeNode:
        return self.nodes[self._places[node.prefix_id]]

    def end(self, node: Node, verdict: str | None) -> None:
        """Note that a chain ends with a node."""
        found = self.at(node)
        found.ends += 1
        found.cut += node.cut
        if found.answer is None:
            found.answer = node.answer
        if found.verdict is None:
            found.verdict = verdict

    def path_to(self, chosen: str | None) -> tuple[int, ...]:
        """The places of the steps that lead to a node of the log."""
        node = self._known.get(chosen or "")
        return () if node is None else tuple(self._places[each.prefix_id] for each in path_of(node))


def answers_of(candidates: Sequence[Row]) -> tuple[AnswerOfChains, ...]:
    """The answers of the rows of `candidates` of one problem."""
    by_answer: defaultdict[str | None, list[Row]] = defaultdict(list)
    for each in candidates:
        by_answer[each["final_answer"]].append(each)
    found = []
    for answer, chains in by_answer.items():
        scores = [each["score"] for each in chains if each["score"] is not None]
        best, total = max(scores, default=None), sum(scores) if scores else None
        verdict = next((each["verdict"] for each in chains if each["verdict"] is not None), None)
        chosen = any(each["chosen"] for each in chains)
        found.append(AnswerOfChains(answer, len(chains), best, total, verdict, chosen))
    return tuple(sorted(found, key=lambda each: (-each.chains, -(each.best or 0.0))))


def _by_row(table: Table[Any], files: Iterable[pa.Table]) -> defaultdict[int, list[Any]]:
    """The records of files, by the row of their problem."""
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for file in files:
        for record in table.from_table(file):
            found[record.row].append(record)
    return found


def _rows(stored: StoredSearch, unit: UnitRef, table: Table[Any], columns: Sequence[str] | None) -> list[Row]:
    return [row for each in stored.of_unit(unit.unit_id, table, columns) for row in each.to_pylist()]
