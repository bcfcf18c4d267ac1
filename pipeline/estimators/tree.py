"""The prefixes of a problem as a tree: chains that begin alike share nodes, and so share rollouts and evidence."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain as chained
from operator import attrgetter

import numpy as np

from pipeline.core.records import ChainShape, Trials
from pipeline.estimators.branching import factor
from pipeline.estimators.grid import POINTS, Flags, Floats, Ints
from pipeline.estimators.passes import Passes, passes_of
from pipeline.estimators.trials import NONE

ROOT = -1
"""Parent of a node that has none."""
UNKNOWN = -1
"""Outcome of a chain of which it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """The measured prefixes of a problem's chains, parents before children.

    `paths`: of each chain its measured nodes, from the bare problem on; `ends` the last of them; `right` its outcome, 1, 0 or
    UNKNOWN. `prices`: of a rollout of each node. `shares`: 1 over the number of chains through it. `closed` nodes are never
    sampled.
    """

    chains: tuple[ChainShape, ...]
    prefix_ids: tuple[str, ...]
    parents: Ints
    depths: "np.ndarray[tuple[int], np.dtype[np.int16]]"
    ends: Ints
    right: Ints
    paths: tuple[Ints, ...]
    prices: Floats
    shares: Floats
    closed: Flags


def measured_prefixes(chain: ChainShape) -> Sequence[str]:
    """The prefixes that rollouts decide: all but the whole chain, where that states an answer that can be graded."""
    return chain.prefix_ids if chain.outcome is None else chain.prefix_ids[:-1]


def tree_of(chains: Sequence[ChainShape], closed: Collection[str] = ()) -> Tree:
    """The tree of one problem's chains. Prefixes in `closed` cannot be sampled.

    Where chains cut the same text into different steps, a node's parent is the one with most steps before it.
    """
    parents, depths = _links(chains)
    ids = sorted(parents, key=lambda prefix: (depths[prefix], prefix))
    at = {prefix: place for place, prefix in enumerate(ids)}
    paths = tuple(np.array([at[prefix] for prefix in measured_prefixes(chain)], dtype=np.int64) for chain in chains)
    prices = np.ones(len(ids))
    users = np.zeros(len(ids))
    for chain, path in zip(chains, paths, strict=True):
        users[path] += 1
        if chain.prices:
            prices[path] = chain.prices[: len(path)]
    return Tree(
        chains=tuple(chains),
        prefix_ids=tuple(ids),
        parents=np.array([ROOT if above is None else at[above] for above in map(parents.get, ids)], dtype=np.int64),
        depths=np.array([depths[prefix] for prefix in ids], dtype=np.int16),
        ends=np.array([path[-1] for path in paths], dtype=np.int64),
        right=np.array([UNKNOWN if chain.outcome is None else chain.outcome for chain in chains], dtype=np.int64),
        paths=paths,
        prices=prices,
        shares=1 / users,
        closed=np.array([prefix in closed for prefix in ids], dtype=np.bool_),
    )


def trees_of(chains: Sequence[ChainShape], closed: Collection[str] = ()) -> list[Tree]:
    """The trees of a unit's problems, in the order in which their bare problems come; chains of a problem share that prefix."""
    by_problem: dict[str, list[ChainShape]] = {}
    for chain in chains:
        by_problem.setdefault(chain.prefix_ids[0], []).append(chain)
    return [tree_of(together, closed) for together in by_problem.values()]


def _links(chains: Sequence[ChainShape]) -> tuple[dict[str, str | None], dict[str, int]]:
    """Parent and depth of every measured prefix. Deeper ones may push others down, so this goes on until nothing moves."""
    parents: dict[str, str | None] = {}
    depths: dict[str, int] = {}
    moved = True
    while moved:
        moved = False
        for chain in chains:
            before: str | None = None
            for prefix in measured_prefixes(chain):
                depth = 0 if before is None else depths[before] + 1
                if depth > depths.get(prefix, -1):
                    parents[prefix], depths[prefix], moved = before, depth, True
                before = prefix
    return parents, depths


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Taken:
    """Steps that rollouts took: the numbers of the nodes behind them, (E,) in order, and what that says of the values before
    and after, (E, POINTS, POINTS)."""

    nodes: Ints
    factors: Floats

    def within(self, nodes: slice) -> slice:
        """The places of those of the nodes."""
        if not len(self.nodes):
            return slice(0, 0)
        start, stop = np.searchsorted(self.nodes, [nodes.start, nodes.stop]).tolist()
        return slice(start, stop)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forest:
    """Trees side by side, their nodes numbered by depth, with what has come in for each.

    `numbers`: of each tree the numbers of its nodes. `levels`: the nodes of each depth; `forks`: whether two of them have the
    same parent. `ends` and `right`: of all chains, as in `Tree`. `graded`, `issued`, `tokens` (N,): of the rollouts. `correct`
    of `tried` (N,) are the trials that speak for a node's value alone; `taken` tells of those that speak for two.
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
    taken: Taken
    graded: Ints
    issued: Ints
    tokens: Ints
    prices: Floats
    shares: Floats
    closed: Flags


def forest_of(trees: Sequence[Tree], trials: Mapping[str, Trials]) -> Forest:
    """At least one tree."""
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
    levels = tuple(slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False))
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
        taken=_taken(numbers, passes),
        graded=counted[:, 1],
        issued=counted[:, 1] + counted[:, 2],
        tokens=counted[:, 3],
        prices=np.concatenate([tree.prices for tree in trees])[order],
        shares=np.concatenate([tree.shares for tree in trees])[order],
        closed=np.concatenate([tree.closed for tree in trees])[order],
    )


_FACTS = attrgetter("counts.correct", "counts.graded", "counts.ungraded", "counts.tokens")


def _counted(trees: Sequence[Tree], trials: Mapping[str, Trials]) -> Ints:
    """(N, 4), as in `_FACTS`."""
    found = [trials.get(prefix, NONE) for tree in trees for prefix in tree.prefix_ids]
    facts = chained.from_iterable(map(_FACTS, found))
    return np.fromiter(facts, dtype=np.int64, count=4 * len(found)).reshape(-1, 4)


def _tried(counted: Ints, numbers: Sequence[Ints], passes: Sequence[Passes | None]) -> tuple[Ints, Ints]:
    """Those that were right, and all, (N,) each."""
    right, tried = counted[:, 0].copy(), counted[:, 1].copy()
    for places, passed in zip(numbers, passes, strict=True):
        if passed is not None:
            for node, (correct, graded) in passed.own.items():
                right[places[node]], tried[places[node]] = correct, graded
    return right, tried


def _taken(numbers: Sequence[Ints], passes: Sequence[Passes | None]) -> Taken:
    steps = {
        int(places[node]): step
        for places, passed in zip(numbers, passes, strict=True)
        if passed is not None
        for node, step in passed.steps.items()
    }
    factors = [factor(steps[node]) for node in sorted(steps)]
    return Taken(
        nodes=np.array(sorted(steps), dtype=np.int64),
        factors=np.array(factors, dtype=np.float64).reshape(-1, POINTS, POINTS),
    )
