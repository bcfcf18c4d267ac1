"""Methods that sample whole chains, which do not depend on each other: best-of-N, and votes.

A chain votes for the answer that it states. One that states none has no vote.

Without `search.accept` all n chains are sampled at once. With it they come in rounds of `search.round`, until one suffices.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy.special import betaincc

from pipeline.searches.base import WHOLE, Found, Search, Steps, Stop, Task, sample, together
from pipeline.searches.choice import Candidates, Scored, best_of, rank, scored_chain, suffices
from pipeline.searches.settings import BestOfNConfig, MajorityConfig, WeightedConfig


class _OfChains(Search):
    """`choose` is what a method adds."""

    newest_only = False
    settings: BestOfNConfig | MajorityConfig | WeightedConfig

    def search(self, task: Task) -> Steps[Found]:
        own = self.settings
        made = Candidates(own)
        size = own.n if own.accept is None else own.round
        found = made.found()
        for first in range(0, own.n, size):
            draws = range(first, min(own.n, first + size))
            made.add((yield from together([self._chain(task, draw) for draw in draws])))
            found = self.choose(made, task)
            if found.stopped is Stop.ACCEPTED:
                break
        return found

    @abstractmethod
    def choose(self, made: Candidates, task: Task) -> Found:
        """The choice from the chains so far. `stopped` is ACCEPTED where it suffices."""
        ...

    def _chain(self, task: Task, draw: int) -> Steps[Scored]:
        nodes = yield from sample(task.root, draw, WHOLE)
        if not self.scores:
            return Scored(node=nodes[-1])
        return (yield from scored_chain(nodes[-1], task.aggregation))


class BestOfN(_OfChains):
    """The chain with the best score. The confidence is its score."""

    Config = BestOfNConfig
    settings: BestOfNConfig

    def choose(self, made: Candidates, task: Task) -> Found:
        return made.found()


class Majority(_OfChains):
    """A chain with the most frequent answer: that with the smallest `node_id`, for there is no better one.

    The confidence is the answer's share of the votes, or `votes.lead_probability` where that is less, because a few votes that
    agree say little. With `search.accept` the search ends when it reaches that. Without any answer, the first chain is chosen,
    with confidence 0."""

    Config = MajorityConfig
    scores = False
    settings: MajorityConfig

    def choose(self, made: Candidates, task: Task) -> Found:
        won = vote(made.chains, task.groups, weighted=False)
        if won is None:
            return made.found_as(made.chains[0] if made.chains else None, 0.0, accepted=False)
        confidence = min(won.share, won.lead)
        enough = self.settings.accept is not None and confidence >= self.settings.accept
        return made.found_as(min(won.chains, key=rank), confidence, accepted=enough)


class Weighted(_OfChains):
    """The best-scored chain with the answer whose chains have the largest sum of scores.

    The confidence is the answer's share of this sum, or the chain's score where that is less: a share says nothing of how good
    the chains are. With `search.accept` the search ends when it reaches that and the chain's reliability is enough. Without any
    answer, the best chain is chosen."""

    Config = WeightedConfig
    settings: WeightedConfig

    def choose(self, made: Candidates, task: Task) -> Found:
        won = vote(made.chains, task.groups, weighted=True)
        if won is None:
            return made.found()
        best = best_of(won.chains, self.settings)
        assert best is not None
        confidence = None if best.score is None else min(won.share, best.score)
        enough = suffices(best, self.settings) and won.share >= (self.settings.accept or 0.0)
        return made.found_as(best, confidence, accepted=enough)


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
