"""A world that answers the questions of a search in memory: the tree world with a scorer of known noise. It counts tokens.

A byte of text is a token. The policy's tokens are those that it writes. The scorer computes the problem and the steps: each
prefix once where it is asked for every new step, and whole chains otherwise.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import NormalDist
from typing import TypeVar

from pipeline.config.search import SearchConfig
from pipeline.core.records import Problem
from pipeline.engines.oracle_tree import Path, Shape, Tree, uniform
from pipeline.graders.answer_groups import answer_groups
from pipeline.scorers.oracle import logit, noise_in_tree
from pipeline.searches.base import WHOLE, Ask, Found, Node, Sample, Score, Search, StepScore, Task, path_of, wrong_found
from pipeline.searches.log import node_id, prefix_id, root_of
from pipeline.searches.machine import Machine
from pipeline.searches.registry import SEARCHES, search_for

T = TypeVar("T")
_NORMAL = NormalDist()
Pick = Callable[[Sequence[Ask]], int]
"""Which of the open questions is answered next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldKind:
    """Trees, and a scorer of them. `unscored`: share of prefixes without a score. `least`: values nearer to 0 or 1 count as
    this, so that the scorer does not know the end of a chain better than its steps."""

    seed: int = 0
    depth: int = 6
    branching: int = 3
    mean: float = 0.5
    spread: float = 0.35
    early: float = 0.0
    auc: float = 0.9
    unscored: float = 0.0
    least: float = 0.0

    @property
    def tree(self) -> Tree:
        return _tree(self)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise of scores, on the scale of log odds."""
        return _sigma(self)


@cache
def _tree(kind: WorldKind) -> Tree:
    shape = Shape(depth=kind.depth, branching=kind.branching, mean=kind.mean, spread=kind.spread, early=kind.early)
    return Tree(kind.seed, shape)


@cache
def _sigma(kind: WorldKind) -> float:
    return noise_in_tree(kind.tree, kind.auc)


def problem_of(number: int) -> Problem:
    """A problem whose right answer is known."""
    return Problem(problem_id=f"problem {number}", text=f"What is {number}?", golds=(str(100 + number),))


@dataclass(slots=True, eq=False)
class TreeWorld:
    """One problem of the world, and what its search has cost so far. `seed`: of the policy's draws. `steps`: sampled ones."""

    kind: WorldKind
    problem: Problem
    newest_only: bool = True
    seed: int = 0
    steps: int = 0
    policy_tokens: int = 0
    scorer_tokens: int = 0
    root: Node = field(init=False)
    _paths: dict[str, Path] = field(default_factory=dict)
    _scored: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.root = root_of(self.problem.problem_id)
        self._paths[self.root.node_id] = ()

    def answer(self, ask: Ask) -> object:
        return self._sampled(ask) if isinstance(ask, Sample) else self._scores(ask)

    def path(self, node: Node) -> Path:
        """The branches that lead to a node. Those of a node that a log gave are read from its texts."""
        found = self._paths.get(node.node_id)
        if found is None:
            found = self.kind.tree.path_of(self.problem.problem_id, [step.text for step in path_of(node)])
            assert found is not None
            self._paths[node.node_id] = found
        return found

    def right(self, node: Node | None) -> bool:
        return node is not None and self.kind.tree.value(self.problem.problem_id, self.path(node)) >= 1.0

    def score(self, path: Path) -> StepScore:
        key = f"{self.kind.seed}:{self.problem.problem_id}:{path}"
        if self.kind.unscored and uniform(f"unscored:{key}") < self.kind.unscored:
            return StepScore(fault="unreadable")
        value = self.kind.tree.value(self.problem.problem_id, path)
        odds = logit(min(1 - self.kind.least, max(self.kind.least, value)))
        noise = _NORMAL.inv_cdf(min(1 - 1e-12, max(1e-12, uniform(f"score:{key}"))))
        return StepScore(score=1 / (1 + math.exp(-odds - self.kind.sigma * noise)), reliability=uniform(f"sure:{key}"))

    def _sampled(self, ask: Sample) -> tuple[Node, ...]:
        assert not ask.node.ended
        found: list[Node] = []
        parent = ask.node
        drawn = self.kind.tree.drawn(self.problem.problem_id, self.path(parent), f"{self.seed}:{ask.key}")
        for index, path in enumerate(drawn):
            if ask.steps != WHOLE and index == ask.steps:
                break
            parent = self._node(parent, path, node_id(ask.key, index))
            found.append(parent)
        self.steps += len(found)
        self.policy_tokens += sum(node.n_tokens for node in found)
        return tuple(found)

    def _node(self, parent: Node, path: Path, name: str) -> Node:
        text = self.kind.tree.step(self.problem, path)
        ended = not self.kind.tree.children(self.problem.problem_id, path)
        self._paths[name] = path
        return Node(
            node_id=name,
            parent=parent,
            depth=len(path),
            text=text,
            prefix_id=prefix_id(self.problem.problem_id, [str(path)]),
            n_tokens=len(text),
            ended=ended,
            answer=self.kind.tree.answer(self.problem, path) if ended else None,
        )

    def _scores(self, ask: Score) -> tuple[StepScore, ...]:
        assert ask.node.depth
        path, nodes = self.path(ask.node), path_of(ask.node)
        if not self._scored or not self.newest_only:
            self.scorer_tokens += len(self.problem.text)
        for node in nodes:
            if not self.newest_only or node.prefix_id not in self._scored:
                self.scorer_tokens += node.n_tokens
            self._scored.add(node.prefix_id)
        if self.newest_only:
            return (*[StepScore()] * (len(path) - 1), self.score(path))
        return tuple(self.score(path[: at + 1]) for at in range(len(path)))


def search_of(method: str, **settings: object) -> Search:
    return search_for(SEARCHES.settings(method)(**settings))


def task_of(world: TreeWorld, settings: SearchConfig, given: tuple[Node, ...] = ()) -> Task:
    return Task(
        problem_id=world.problem.problem_id, root=world.root, given=given, groups=answer_groups, settings=settings
    )


def in_order(_open: Sequence[Ask]) -> int:
    return 0


def shuffled(seed: int) -> Pick:
    """Answers any open question next."""
    rng = random.Random(seed)
    return lambda asked: rng.randrange(len(asked))


def run(machine: "Machine[T]", answer: Callable[[Ask], object], pick: Pick = in_order) -> T:
    due = machine.begin()
    while due:
        ask = due.pop(pick(due))
        due += machine.take(ask, answer(ask))
    assert machine.done
    assert machine.result is not None
    return machine.result


def found_by(search: Search, world: TreeWorld, pick: Pick = in_order) -> Found:
    found = run(Machine(search.search(task_of(world, search.settings))), world.answer, pick)
    assert not wrong_found(found)
    return found
