"""The prefixes of a problem as a tree, and the trials of each prefix in the order of issue.

Chains with the same beginning share nodes, and so share rollouts and evidence.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from pipeline.core.records import UNGRADED, ChainShape, Counts, Finish, RolloutOutcome, Trials, Verdict

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
ROOT = -1
"""Parent of a root."""
UNKNOWN = -1
"""Outcome of a chain whose outcome is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """The measured prefixes of a problem's chains, parents before children.

    Per chain: `paths`, its measured nodes from the bare problem on; `ends`, the last of them; `right`, its outcome (1, 0 or
    UNKNOWN). Per node: `prices`, the price of a rollout; `shares`, 1 / the number of chains through it; `closed`, whether it is
    never sampled.
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
    """The prefixes whose values need rollouts: all, without the complete chain if its own answer was graded."""
    return chain.prefix_ids if chain.outcome is None else chain.prefix_ids[:-1]


def tree_of(chains: Sequence[ChainShape], closed: Collection[str] = ()) -> Tree:
    """The tree of one problem's chains. Prefixes in `closed` cannot be sampled.

    Where chains split the same text into different steps, a node's parent is the candidate with the most steps before it.
    """
    parents, depths = _links(chains)
    ids = sorted(parents, key=lambda prefix: (depths[prefix], prefix))
    at = {prefix: position for position, prefix in enumerate(ids)}
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
    """The trees of a unit's problems in the order of their first chains. The chains of a problem share its first prefix."""
    by_problem: dict[str, list[ChainShape]] = {}
    for chain in chains:
        by_problem.setdefault(chain.prefix_ids[0], []).append(chain)
    return [tree_of(together, closed) for together in by_problem.values()]


def _links(chains: Sequence[ChainShape]) -> tuple[dict[str, str | None], dict[str, int]]:
    """Parent and depth of every measured prefix. A deeper prefix may lower others, so this repeats until nothing changes."""
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


NONE = Trials()


def trials_of(outcomes: Iterable[RolloutOutcome]) -> dict[str, Trials]:
    """Trials by prefix id. A prefix without an outcome has no entry.

    Only rollouts without a gap before them in the order of issue count. Which rollouts after a gap are finished depends on
    their length, and so on whether they are correct.
    """
    by_prefix: dict[str, list[RolloutOutcome]] = {}
    for outcome in outcomes:
        by_prefix.setdefault(outcome.prefix_id, []).append(outcome)
    return {prefix_id: _trials(_without_gap(together)) for prefix_id, together in by_prefix.items()}


def counts_of(outcomes: Sequence[bool | None]) -> Counts:
    """Counts from outcomes alone. Tokens and truncated rollouts stay 0."""
    graded = [outcome for outcome in outcomes if outcome is not None]
    return Counts(correct=sum(graded), graded=len(graded), ungraded=len(outcomes) - len(graded))


def _without_gap(outcomes: list[RolloutOutcome]) -> list[RolloutOutcome]:
    outcomes.sort(key=lambda outcome: outcome.issue_index)
    return [outcome for position, outcome in enumerate(outcomes) if outcome.issue_index == position]


def _trials(outcomes: Sequence[RolloutOutcome]) -> Trials:
    verdicts = [outcome.verdict for outcome in outcomes]
    ungraded = sum(verdict in UNGRADED for verdict in verdicts)
    return Trials(
        outcomes=tuple(None if verdict in UNGRADED else verdict is Verdict.CORRECT for verdict in verdicts),
        rounds=tuple(len(list(together)) for _, together in groupby(outcome.round for outcome in outcomes)),
        reached=tuple(outcome.reached_prefix_id for outcome in outcomes),
        counts=Counts(
            correct=verdicts.count(Verdict.CORRECT),
            graded=len(outcomes) - ungraded,
            ungraded=ungraded,
            truncated=sum(outcome.finish is Finish.LENGTH for outcome in outcomes),
            tokens=sum(outcome.n_tokens for outcome in outcomes),
        ),
    )
