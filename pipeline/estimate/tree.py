"""The prefixes of a problem as a tree: chains that begin alike share nodes, and so share rollouts and evidence."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.estimate.grid import Floats, Ints
from pipeline.records import ChainShape, Trials

ROOT = -1
"""Parent of a node that has none."""
_NO_TRIALS = Trials()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """The measured prefixes of a problem's chains, parents before children.

    `paths`: of each chain its measured nodes, from the bare problem on. `prices`: of a rollout of each node. `shares`: 1 over
    the number of chains through it. `closed` nodes are never sampled.
    """

    chains: tuple[ChainShape, ...]
    prefix_ids: tuple[str, ...]
    parents: Ints
    depths: Ints
    paths: tuple[Ints, ...]
    prices: Floats
    shares: Floats
    closed: "np.ndarray[tuple[int], np.dtype[np.bool_]]"


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
        parents=np.array([at.get(parents[prefix] or "", ROOT) for prefix in ids], dtype=np.int64),
        depths=np.array([depths[prefix] for prefix in ids], dtype=np.int64),
        paths=paths,
        prices=prices,
        shares=1 / users,
        closed=np.array([prefix in closed for prefix in ids], dtype=np.bool_),
    )


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
class Forest:
    """Trees side by side, with what has come in for each node.

    `levels`: the nodes of each depth. `ends`: of each chain its last measured node; `right`: 1, 0, or -1 where its outcome is
    not known. `issued` counts rollouts, graded or not, `tokens` what they took. `offsets`: where each tree begins, and the end.
    """

    parents: Ints
    levels: tuple[Ints, ...]
    ends: Ints
    right: Ints
    correct: Ints
    graded: Ints
    issued: Ints
    tokens: Ints
    offsets: Ints


def forest_of(trees: Sequence[Tree], trials: Mapping[str, Trials]) -> Forest:
    """At least one tree."""
    sizes = [len(tree.prefix_ids) for tree in trees]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    parents = np.concatenate(
        [np.where(tree.parents < 0, ROOT, tree.parents + offset) for tree, offset in zip(trees, offsets, strict=False)]
    )
    depths = np.concatenate([tree.depths for tree in trees])
    order = np.argsort(depths, kind="stable")
    counted = np.array(
        [
            (found.counts.correct, found.counts.graded, len(found.outcomes), found.counts.tokens)
            for tree in trees
            for prefix in tree.prefix_ids
            for found in (trials.get(prefix, _NO_TRIALS),)
        ],
        dtype=np.int64,
    )
    return Forest(
        parents=parents,
        levels=tuple(np.split(order, np.cumsum(np.bincount(depths))[:-1])),
        ends=np.array(
            [path[-1] + offset for tree, offset in zip(trees, offsets, strict=False) for path in tree.paths],
            dtype=np.int64,
        ),
        right=np.array(
            [-1 if chain.outcome is None else int(chain.outcome) for tree in trees for chain in tree.chains]
        ),
        correct=counted[:, 0],
        graded=counted[:, 1],
        issued=counted[:, 2],
        tokens=counted[:, 3],
        offsets=offsets,
    )
