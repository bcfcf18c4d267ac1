"""What a policy wrote for one problem, as a tree: its chains and the rollouts of their prefixes, joined where their steps
have equal texts. Pure.

A node is a prefix: the problem and some steps, without white space around each of them. Prefixes with equal texts and
different tokens are one node. A chain that ends with a step and one that goes on after it are two nodes, because the value of
the first is its outcome.

A rollout that was issued at a node is a trial of that node's value, and so is one that was issued above it and passes through
it. It is a *fair* trial, one that an unbiased estimate may count, only if the number of trials does not depend on outcomes: see
`FairRounds`. Those issued at a node that `grow` promoted are fair: their number was fixed. Where `grow` promoted any node, no
rollout is a fair trial of what it passes through: promotions take nodes with conspicuous outcomes, so the others are selected
too.

The last step of a rollout that a limit ended is not known to be whole, and is no node.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.core.records import UNGRADED, Finish, Verdict
from pipeline.trees.cut import StepCut

NO_PARENT = -1
FairRounds = int | None
"""How many of the first rounds of a prefix have fair trials. None: all of them."""
_NOT_WRITTEN = frozenset({Finish.TOO_LONG.value, Finish.ENGINE_FAILED.value, Finish.ABORT.value})
"""Rollouts that have no text, or were stopped because of what others had written."""
_UNGRADED = frozenset(verdict.value for verdict in UNGRADED)
_CORRECT, _STOP = Verdict.CORRECT.value, Finish.STOP.value


class StepLabel(NamedTuple):
    """What `labels` says of one prefix; see `core.records.StepValue`. `rollouts`: how many were graded."""

    value: float | None = None
    value_sd: float | None = None
    unbiased_value: float | None = None
    correct: int = 0
    rollouts: int = 0
    label: int | None = None


NO_LABEL = StepLabel()


class LabelledSteps(NamedTuple):
    """A row of `labels`. `steps`: trimmed texts. `stems`: what the policy saw of each step, with the white space after it.
    `prefix_ids` and `labels`: of the bare problem, then of each step. `grown`: `grow` promoted its last prefix."""

    steps: Sequence[str]
    stems: Sequence[str]
    prefix_ids: Sequence[str]
    labels: Sequence[StepLabel]
    outcome: bool | None
    grown: bool = False


class WrittenRollout(NamedTuple):
    """A row of `rollouts`, with its present verdict. `round`: counted from 0."""

    rollout_id: str
    prefix_id: str
    round: int
    text: str
    finish: str
    verdict: str
    n_tokens: int


class Source(NamedTuple):
    """The rollout that wrote a node first: its id, its prefix, the steps of it up to the node, and where the last of them ends
    in its text, in characters."""

    rollout_id: str
    prefix_id: str
    steps: int
    end: int


class Tally(NamedTuple):
    """Counts of rollouts: correct ones and graded ones, those without a verdict, and the tokens of all."""

    correct: int = 0
    graded: int = 0
    ungraded: int = 0
    tokens: int = 0

    def plus(self, verdict: str, tokens: int) -> "Tally":
        """With one more rollout."""
        correct, graded, ungraded, all_tokens = self
        if verdict in _UNGRADED:
            return Tally(correct, graded, ungraded + 1, all_tokens + tokens)
        return Tally(correct + (verdict == _CORRECT), graded + 1, ungraded, all_tokens + tokens)


NO_ROLLOUTS = Tally()


@dataclass(slots=True, eq=False)
class TreeNode:
    """A prefix. `depth`: its number of steps. `text`: its last step. `ended`: the chain ends with it; `outcome`: whether it
    is correct, None where that is unknown.

    `prefix_ids`: of the labelled prefixes that it is; several where equal texts have different tokens. `label`: what `labels`
    says of them. `issued`: rollouts that were issued at it, `fair_issued` the fair ones among them. `passed`: rollouts that
    were issued above it and pass through it, or end with it; `fair_passed`: the fair ones. Tokens of a passing rollout are
    those that it wrote after the node, as far as its characters tell. `source`: None if no rollout wrote it. `grown`: `grow`
    promoted it.
    """

    parent: int
    depth: int
    text: str
    ended: bool
    outcome: bool | None = None
    prefix_ids: tuple[str, ...] = ()
    label: StepLabel | None = None
    issued: Tally = NO_ROLLOUTS
    fair_issued: Tally = NO_ROLLOUTS
    passed: Tally = NO_ROLLOUTS
    fair_passed: Tally = NO_ROLLOUTS
    source: Source | None = None
    grown: bool = False
    children: list[int] = field(default_factory=list)

    @property
    def value(self) -> float | None:
        """The value that is known or measured: the outcome of an ended chain, else that of `labels`."""
        if self.ended:
            return None if self.outcome is None else float(self.outcome)
        return None if self.label is None else self.label.value

    @property
    def correct(self) -> int:
        """Correct rollouts, issued or passing."""
        return self.issued.correct + self.passed.correct

    @property
    def graded(self) -> int:
        """Graded rollouts, issued or passing."""
        return self.issued.graded + self.passed.graded

    @property
    def mean_tokens(self) -> float:
        """The mean length of a rollout from here on, at least 1: of those that were issued or pass."""
        count = self.graded + self.issued.ungraded + self.passed.ungraded
        return max(1.0, (self.issued.tokens + self.passed.tokens) / max(1, count))


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutTree:
    """See the module. `nodes`: parents before children, the bare problem first. `rollouts`: how many there were, and `tokens`
    theirs. `joined`: labelled prefixes that are one node with another one."""

    problem_id: str
    nodes: Sequence[TreeNode]
    rollouts: int = 0
    tokens: int = 0
    joined: int = 0

    def path(self, node: int) -> list[int]:
        """The nodes from the first step to a node; empty for the bare problem."""
        found: list[int] = []
        while self.nodes[node].parent != NO_PARENT:
            found.append(node)
            node = self.nodes[node].parent
        return found[::-1]

    def steps(self, node: int) -> list[str]:
        """The texts of the steps of a prefix."""
        return [self.nodes[each].text for each in self.path(node)]

    def sibling_sets(self) -> Iterator[list[int]]:
        """The nodes after each prefix that more than one step follows."""
        return (node.children for node in self.nodes if len(node.children) > 1)


def rollout_tree(
    problem_id: str,
    chains: Iterable[LabelledSteps],
    rollouts: Iterable[WrittenRollout],
    cut: StepCut,
    fair: FairRounds = None,
) -> RolloutTree:
    """The tree of one problem. Rollouts of prefixes that no chain has are left out. The order in which rollouts come does not
    matter."""
    grower = _Builder(cut, fair)
    for chain in chains:
        grower.add_chain(chain)
    for rollout in sorted(rollouts):
        grower.add_rollout(rollout)
    return RolloutTree(
        problem_id=problem_id,
        nodes=grower.nodes,
        rollouts=grower.rollouts,
        tokens=grower.tokens,
        joined=sum(max(0, len(node.prefix_ids) - 1) for node in grower.nodes),
    )


class _Builder:
    def __init__(self, cut: StepCut, fair: FairRounds) -> None:
        self._cut = cut
        self._fair = fair
        self.nodes = [TreeNode(parent=NO_PARENT, depth=0, text="", ended=False)]
        self.rollouts = self.tokens = 0
        self._has_grown = False
        self._known: dict[tuple[int, str, bool], int] = {}
        self._at: dict[str, tuple[int, str]] = {}
        """Prefix id -> its node, and its last step as the policy saw it."""
        self._ends: dict[str, tuple[int, str, str]] = {}
        """The same for whole chains: the node before their last step, its text, and that step as the policy saw it."""

    def add_chain(self, chain: LabelledSteps) -> None:
        at = 0
        if chain.prefix_ids[0] not in self._at:
            self._at[chain.prefix_ids[0]] = at, ""
            self._label(at, chain.prefix_ids[0], chain.labels[0])
        last = len(chain.steps)
        for number, text in enumerate(chain.steps, start=1):
            prefix_id, stem, label = chain.prefix_ids[number], chain.stems[number - 1], chain.labels[number]
            if number == last and chain.outcome is not None:
                self._ends.setdefault(prefix_id, (at, text, stem))
                at = self._child(at, text, ended=True)
                self.nodes[at].outcome = chain.outcome
                self._label(at, prefix_id, label)
            else:
                at = self._child(at, text, ended=False)
                if prefix_id not in self._at:
                    self._at[prefix_id] = at, stem
                    self._label(at, prefix_id, label)
            self.nodes[at].grown |= chain.grown and number == last
        self._has_grown |= chain.grown

    def add_rollout(self, rollout: WrittenRollout) -> None:
        found = None if rollout.finish in _NOT_WRITTEN else self._begun(rollout.prefix_id)
        if found is None:
            return
        at, before = found
        _, _, of_round, text, finish, verdict, tokens = rollout
        self.rollouts += 1
        self.tokens += tokens
        fair = self._fair is None or of_round < self._fair
        begun = self.nodes[at]
        begun.issued = begun.issued.plus(verdict, tokens)
        if fair or begun.grown:
            begun.fair_issued = begun.fair_issued.plus(verdict, tokens)
        steps = self._cut(before, text)
        stopped = finish == _STOP
        last = len(steps)
        for number, (step, end) in enumerate(steps if stopped else steps[:-1], start=1):
            ended = stopped and number == last
            at = self._child(at, step, ended=ended)
            node = self.nodes[at]
            after = round(tokens * (1 - end / len(text)))
            so_far = node.passed
            node.passed = so_far.plus(verdict, after)
            if fair and not self._has_grown:
                # Most nodes have fair trials alone: one object then, because a large tree has very many.
                all_fair = node.fair_passed is so_far
                node.fair_passed = node.passed if all_fair else node.fair_passed.plus(verdict, after)
            if node.source is None:
                node.source = Source(rollout.rollout_id, rollout.prefix_id, number, end)
            if ended and node.outcome is None and verdict not in _UNGRADED:
                node.outcome = verdict == _CORRECT

    def _child(self, parent: int, text: str, *, ended: bool) -> int:
        key = parent, text, ended
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.nodes)
            above = self.nodes[parent]
            above.children.append(found)
            self.nodes.append(TreeNode(parent=parent, depth=above.depth + 1, text=text, ended=ended))
        return found

    def _label(self, at: int, prefix_id: str, label: StepLabel) -> None:
        node = self.nodes[at]
        if prefix_id not in node.prefix_ids:
            node.label = label if node.label is None else _together(node.label, label)
            node.prefix_ids += (prefix_id,)

    def _begun(self, prefix_id: str) -> tuple[int, str] | None:
        """The node that rollouts of a prefix go on from, and its last step as the policy saw it; None for an unknown prefix.
        What goes on after the last step of a chain that ends is no trial of that chain."""
        found = self._at.get(prefix_id)
        if found is None and prefix_id in self._ends:
            parent, text, stem = self._ends[prefix_id]
            found = self._at[prefix_id] = self._child(parent, text, ended=False), stem
            self.nodes[found[0]].prefix_ids += (prefix_id,)
        return found


def _together(one: StepLabel, other: StepLabel) -> StepLabel:
    """The label of prefixes with equal texts: their counts together, and of the rest what the one with more rollouts has. They
    have the same label, or none; one that is not measured says nothing."""
    more = max(one, other, key=lambda each: (each.value is not None, each.rollouts))
    return more._replace(
        correct=one.correct + other.correct,
        rollouts=one.rollouts + other.rollouts,
        label=more.label if None in (one.value, other.value) or one.label == other.label else None,
    )


def most_counted(tree: RolloutTree, most: int) -> list[int]:
    """The places of at most `most` nodes, the bare problem first, in the order of the tree. None is without its parent: of the
    nodes after those that are chosen already, the one with the most graded rollouts is next."""
    chosen: list[int] = []
    waiting = [(0, 0)]
    while waiting and len(chosen) < most:
        _, place = heapq.heappop(waiting)
        chosen.append(place)
        for child in tree.nodes[place].children:
            heapq.heappush(waiting, (-tree.nodes[child].graded, child))
    return sorted(chosen)


def by_count(tree: RolloutTree, places: list[int]) -> list[int]:
    """Nodes after one prefix, those with the most graded rollouts first."""
    return sorted(places, key=lambda place: (-tree.nodes[place].graded, place))
