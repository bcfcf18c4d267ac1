"""What the methods share: the score of a chain or of its beginning, which of two is better, and whether one is good enough.

A chain without a score is worse than every chain that has one. Of equally good ones, the smaller `node_id` is the better: so a
choice depends on no order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.config.choices import Aggregation
from pipeline.config.search import SearchConfig
from pipeline.scorers.chain_scores import chain_score
from pipeline.searches.base import (
    Found,
    Node,
    Steps,
    StepScore,
    Stop,
    Task,
    path_of,
    sample,
    score,
    step_scores,
    together,
)


class Scored(NamedTuple):
    """A chain or its beginning, up to `node`, with its score by the task's aggregation; None: it has no score.

    `steps`: the scores of its steps. `reliability`: what the scorer says of the last one."""

    node: Node
    steps: tuple[StepScore, ...] = ()
    score: float | None = None
    reliability: float | None = None


def rank(scored: Scored) -> tuple[bool, float, str]:
    """The better one has the smaller rank."""
    return (scored.score is None, -(scored.score or 0.0), scored.node.node_id)


def with_scores(node: Node, steps: Sequence[StepScore], aggregation: Aggregation) -> Scored:
    """A chain with the scores of its steps. If one of them is unknown, the score of the chain is (see `chain_score`)."""
    return Scored(
        node=node,
        steps=tuple(steps),
        score=chain_score([step.score for step in steps], aggregation),
        reliability=steps[-1].reliability if steps else None,
    )


def scored_chain(node: Node, aggregation: Aggregation) -> Steps[Scored]:
    """A chain whose steps are all scored at once; see `Search.newest_only`."""
    return with_scores(node, (yield from step_scores(node)), aggregation)


def scored_after(before: Scored, node: Node, aggregation: Aggregation) -> Steps[Scored]:
    """The chain that ends at `node`, of which `before` is the beginning. Asks for the score of each step after `before`: with a
    cache of prefixes, that costs as much as the score of the last one."""
    new = yield from together([score(each) for each in path_of(node)[before.node.depth :]])
    return with_scores(node, (*before.steps, *new), aggregation)


def next_step(task: Task, before: Scored, draw: int) -> Steps[Scored]:
    """A next step after a beginning of a chain, scored."""
    (node,) = yield from sample(before.node, draw)
    return (yield from scored_after(before, node, task.aggregation))


def suffices(scored: Scored, settings: SearchConfig) -> bool:
    """Whether a chain is so good that no more need be sampled: it ended by itself and states an answer, its score reaches
    `search.accept`, and what the scorer says of its own reliability reaches `search.reliability`."""
    return is_enough(scored.node, scored.score, scored.reliability, settings)


def is_enough(chain: Node, confidence: float | None, reliability: float | None, settings: SearchConfig) -> bool:
    """Whether a chain of this confidence and reliability passes the gate, if there is one. None does that was cut or states no
    answer."""
    if settings.accept is None or confidence is None or confidence < settings.accept:
        return False
    if not chain.ended or chain.cut or chain.answer is None:
        return False
    return settings.reliability is None or (reliability is not None and reliability >= settings.reliability)


def best_of(chains: Sequence[Scored], settings: SearchConfig) -> Scored | None:
    """The best one of those that suffice; where none does, of all. None if there is none."""
    good = [chain for chain in chains if suffices(chain, settings)]
    return min(good or chains, key=rank, default=None)


@dataclass(slots=True, eq=False)
class Candidates:
    """The ended chains that a search has made, in order, none twice. `accepted`: whether one of them suffices."""

    settings: SearchConfig
    chains: list[Scored] = field(default_factory=list)
    accepted: bool = False
    _known: set[str] = field(default_factory=set)

    def add(self, made: Iterable[Scored]) -> None:
        """Add those of the given chains that have ended."""
        for chain in made:
            if chain.node.ended and chain.node.node_id not in self._known:
                self._known.add(chain.node.node_id)
                self.chains.append(chain)
                self.accepted = self.accepted or suffices(chain, self.settings)

    def found(self) -> Found:
        """The end of a search that chooses the best one. Its confidence is the score."""
        best = best_of(self.chains, self.settings)
        return self.found_as(best, None if best is None else best.score, accepted=self.accepted)

    def found_as(self, chosen: Scored | None, confidence: float | None, *, accepted: bool) -> Found:
        """The end of a search that chooses this one, if any. `accepted`: because it suffices."""
        return Found(
            candidates=tuple(chain.node for chain in self.chains),
            chosen=chosen.node if chosen else None,
            confidence=confidence if chosen else None,
            stopped=Stop.NO_CHAIN if not self.chains else Stop.ACCEPTED if accepted else Stop.DONE,
        )


def distinct(scored: Iterable[Scored]) -> list[Scored]:
    """Of those with equal texts the first one. An ended chain and a beginning with the same texts are two."""
    found: dict[tuple[str, bool], Scored] = {}
    for each in scored:
        found.setdefault((each.node.prefix_id, each.node.ended), each)
    return list(found.values())
