"""The trees of several problems in joint arrays, with the rollouts of each prefix: the input of the posterior.

Each rollout is assigned to the prefix whose value it is a trial of, and counts once. Whether a rollout of a prefix reproduces
the next step token for token is decided before its outcome. A rollout that does is therefore an unbiased trial of the prefix
after the step. The remaining rollouts are no longer unbiased trials of their own prefix. `reproduction` has the joint evidence
of both groups on the two values.

If rollouts reproduce several different steps after a prefix, only the step with the most rollouts counts. Rollouts that took
another step remain trials of the prefix. Where there is only one next step, it also counts if no rollout took it, because
leaving out such steps would make the other ones look more usual than they are. A problem none of whose steps was reproduced is
left out as a whole: its log may come from an estimator that does not record reproduced steps.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain as chained
from operator import attrgetter
from typing import Any

import numpy as np

from pipeline.core.records import Trials
from pipeline.estimators.pooled.reproduction import Branching
from pipeline.estimators.tree import NONE, ROOT, Flags, Floats, Ints, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """For a tree: `own`, (correct, graded) of the nodes whose trials differ from their own rollouts, and `steps`, the counts of
    the steps that rollouts reproduced, by the node after the step."""

    own: Mapping[int, tuple[int, int]]
    steps: Mapping[int, Branching]


_Tallies = dict[int, tuple[int, int]]
"""(correct, graded) rollouts by the last node that they reproduced: the node that they are at, or one below it."""


def passes_of(prefix_ids: Sequence[str], parents: Ints, trials: Mapping[str, Trials]) -> Passes | None:
    """Nodes are numbered as in `Tree`. None where no rollout reproduced a step."""
    found = [trials.get(prefix, NONE) for prefix in prefix_ids]
    reproduced = [any(have.reached) for have in found]
    if not any(reproduced):
        return None
    above = parents.tolist()
    at = {prefix: node for node, prefix in enumerate(prefix_ids)}
    only_child: dict[int, int | None] = {}
    for node, parent in enumerate(above):
        only_child[parent] = None if parent in only_child else node
    arrived: dict[int, _Tallies] = {}
    own: dict[int, tuple[int, int]] = {}
    steps: dict[int, Branching] = {}
    for node, have in enumerate(found):
        if reproduced[node] or node in arrived:
            here = arrived.pop(node, {})
            if reproduced[node]:
                _add_each(here, node, have, at, above)
            else:
                _add(here, node, have.counts.correct, have.counts.graded)
            step = only_child.get(node) or _most_taken(here, node, above)
            correct, graded = here.pop(node, (0, 0))
            taken = sum(went_on for _, went_on in here.values())
            if here and step is not None:
                arrived[step] = here
        elif have.outcomes:
            step, taken, correct, graded = only_child.get(node), 0, have.counts.correct, have.counts.graded
        else:
            continue
        if step is not None and (graded or taken):
            own[node] = 0, 0
            steps[step] = Branching(taken, graded, correct)
        else:
            own[node] = correct, graded
    return Passes(own=own, steps=steps)


def _add_each(here: _Tallies, node: int, have: Trials, at: Mapping[str, int], parents: Sequence[int]) -> None:
    for outcome, reached in zip(have.outcomes, have.reached, strict=True):
        if outcome is not None:
            last = node if reached is None else at.get(reached, node)
            if _child(node, last, parents) == node:
                last = node
            _add(here, last, outcome, 1)


def _add(here: _Tallies, last: int, correct: int, graded: int) -> None:
    before = here.get(last, (0, 0))
    here[last] = before[0] + correct, before[1] + graded


def _most_taken(here: _Tallies, node: int, parents: Sequence[int]) -> int | None:
    """The child of `node` that most rollouts took. Those that took another one are counted at `node`."""
    children = {last: _child(node, last, parents) for last in here if last != node}
    taken: Counter[int] = Counter()
    for last, child in children.items():
        taken[child] += here[last][1]
    step = min(taken, key=lambda child: (-taken[child], child), default=None)
    for last, child in children.items():
        if child != step:
            _add(here, node, *here.pop(last))
    return step


def _child(node: int, last: int, parents: Sequence[int]) -> int:
    """The child of `node` on the path to `last`. `node` where `last` is not below it."""
    while last > node and parents[last] != node:
        last = parents[last]
    return max(last, node)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReproducedSteps:
    """E steps that rollouts could reproduce: `nodes`, the sorted numbers of the nodes after these steps, (E,); `seen`, the
    rollouts that did and did not; and `levels`, the entries of each depth."""

    nodes: Ints
    seen: tuple[Branching, ...]
    levels: tuple[slice, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forest:
    """Several trees with N nodes, which are numbered by depth, and their rollouts.

    `numbers`: the numbers of each tree's nodes. `levels`: the nodes of each depth. `forks`: whether two nodes of that depth
    have the same parent. `ends`, `right`: for all chains, as in `Tree`. `graded`, `issued`, `tokens` (N,): counts of the
    rollouts. `correct` of `tried` (N,): trials that are evidence on one node's value. `taken`: evidence on two values.
    `prices`, `shares`, `closed` (N,): as in `Tree`.
    """

    numbers: tuple[Ints, ...]
    parents: Ints
    levels: tuple[slice, ...]
    forks: tuple[bool, ...]
    ends: Ints
    right: Ints
    correct: Ints
    tried: Ints
    taken: ReproducedSteps
    graded: Ints
    issued: Ints
    tokens: Ints
    prices: Floats
    shares: Floats
    closed: Flags


def forest_of(trees: Sequence[Tree], trials: Mapping[str, Trials]) -> Forest:
    """Join trees (at least one) with their trials."""
    sizes = np.array([len(tree.prefix_ids) for tree in trees])
    starts = np.cumsum(sizes) - sizes
    depths = np.concatenate([tree.depths for tree in trees])
    order = np.argsort(depths, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    parents = np.concatenate([tree.parents for tree in trees])
    parents = np.where(parents == ROOT, ROOT, number[parents + np.repeat(starts, sizes)])[order]
    children = np.bincount(parents + 1, minlength=len(order) + 1)
    stops = np.cumsum(np.bincount(depths)).tolist()
    levels = _slices(stops)
    chains = [len(tree.chains) for tree in trees]
    counted = _counted(trees, trials)[order]
    numbers = tuple(number[start : start + size] for start, size in zip(starts, sizes, strict=True))
    passes = [passes_of(tree.prefix_ids, tree.parents, trials) for tree in trees]
    correct, tried = _tried(counted, numbers, passes)
    return Forest(
        numbers=numbers,
        parents=parents,
        levels=levels,
        forks=tuple(bool(level.start and children[parents[level] + 1].max() > 1) for level in levels),
        ends=number[np.concatenate([tree.ends for tree in trees]) + np.repeat(starts, chains)],
        right=np.concatenate([tree.right for tree in trees]),
        correct=correct,
        tried=tried,
        taken=_taken(numbers, passes, stops),
        graded=counted[:, 1],
        issued=counted[:, 1] + counted[:, 2],
        tokens=counted[:, 3],
        prices=np.concatenate([tree.prices for tree in trees])[order],
        shares=np.concatenate([tree.shares for tree in trees])[order],
        closed=np.concatenate([tree.closed for tree in trees])[order],
    )


_COUNTS = attrgetter("counts")
_OUTCOMES = attrgetter("correct", "graded", "ungraded", "tokens")


def _counted(trees: Sequence[Tree], trials: Mapping[str, Trials]) -> Ints:
    """Counts of each prefix in the order of `_OUTCOMES`, (N, 4)."""
    found = [trials.get(prefix, NONE) for tree in trees for prefix in tree.prefix_ids]
    counts = chained.from_iterable(map(_OUTCOMES, map(_COUNTS, found)))
    return np.fromiter(counts, dtype=np.int64, count=4 * len(found)).reshape(-1, 4)


def _tried(counted: Ints, numbers: Sequence[Ints], passes: Sequence[Passes | None]) -> tuple[Ints, Ints]:
    """The number of correct and of all trials of each node, (N,) each."""
    changed = [(nodes, passed.own) for nodes, passed in zip(numbers, passes, strict=True) if passed is not None]
    tried = counted[:, :2].copy()
    if changed:
        tallies = chained.from_iterable(chained.from_iterable(own.values() for _, own in changed))
        tried[_numbered(changed)] = np.fromiter(tallies, dtype=np.int64).reshape(-1, 2)
    return tried[:, 0], tried[:, 1]


def _taken(numbers: Sequence[Ints], passes: Sequence[Passes | None], stops: Sequence[int]) -> ReproducedSteps:
    passed = [(nodes, passed.steps) for nodes, passed in zip(numbers, passes, strict=True) if passed is not None]
    if not passed:
        return ReproducedSteps(nodes=np.zeros(0, dtype=np.int64), seen=(), levels=_slices([0] * len(stops)))
    nodes = _numbered(passed)
    order = np.argsort(nodes)
    nodes = nodes[order]
    seen = list(chained.from_iterable(steps.values() for _, steps in passed))
    return ReproducedSteps(
        nodes=nodes,
        seen=tuple(map(seen.__getitem__, order.tolist())),
        levels=_slices(np.searchsorted(nodes, stops).tolist()),
    )


def _slices(stops: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False))


def _numbered(found: Sequence[tuple[Ints, Mapping[int, Any]]]) -> Ints:
    """The numbers in the forest of the nodes in each mapping. The numbers of all nodes of its tree stand beside it."""
    return np.concatenate([numbers[list(of_tree)] for numbers, of_tree in found])
