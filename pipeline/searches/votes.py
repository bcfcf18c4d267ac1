"""Votes of ended chains for their answers.

A chain votes for the answer that it states. One that states none has no vote.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy.special import betaincc

from pipeline.searches.choice import Scored

Groups = Callable[[Sequence[str | None]], Sequence[int | None]]
"""See `Task.groups`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """The chains of the leading answer, in order, and its share of all votes. `lead`: see `lead_probability`."""

    chains: tuple[Scored, ...]
    share: float
    lead: float


def vote(chains: Sequence[Scored], groups: Groups, *, weighted: bool) -> Vote | None:
    """None if no chain states an answer.

    Each chain has one vote, or with `weighted` its score; no score is 0. Of answers with equal votes, the one with more chains
    leads; of these, the one of the chain with the smallest `node_id`."""
    said: dict[int, list[Scored]] = {}
    for chain, group in zip(chains, groups([chain.node.answer for chain in chains]), strict=True):
        if group is not None:
            said.setdefault(group, []).append(chain)
    if not said:
        return None
    votes = {
        group: math.fsum(chain.score or 0.0 for chain in of) if weighted else float(len(of))
        for group, of in said.items()
    }

    def order(group: int) -> tuple[float, int, str]:
        return (-votes[group], -len(said[group]), min(chain.node.node_id for chain in said[group]))

    leading, *others = sorted(said, key=order)
    total = math.fsum(votes.values())
    return Vote(
        chains=tuple(said[leading]),
        share=min(1.0, votes[leading] / total) if total else 0.0,
        lead=lead_probability(len(said[leading]), max((len(said[group]) for group in others), default=0)),
    )


def lead_probability(first: int, second: int) -> float:
    """P(an answer is more frequent than another one), after `first` and `second` votes.

    The share that the first has of the votes for the two is uniform before any vote. Now it is Beta(first + 1, second + 1), and
    this is the probability that it exceeds 1/2. Adaptive-Consistency (Aggarwal et al. 2023) stops by it."""
    return float(betaincc(first + 1, second + 1, 0.5))
