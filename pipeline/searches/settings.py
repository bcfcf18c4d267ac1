"""Settings of the methods of search. Pure: this module loads no library."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP, check
from pipeline.config.search import SearchConfig


@dataclass(kw_only=True, slots=True)
class _OfChains(SearchConfig):
    """Methods that sample whole chains."""

    round: Annotated[int, Range(ge=1, le=4096)] = 4
    """With search.accept: chains that are sampled before each look at whether it is reached."""


@dataclass(kw_only=True, slots=True)
class BestOfNConfig(_OfChains):
    """The best-scored of n independent chains."""

    method: Annotated[str, BY_GROUP] = "best_of_n"


@dataclass(kw_only=True, slots=True)
class MajorityConfig(_OfChains):
    """The most frequent answer of n independent chains. No scorer is used.

    The confidence is the answer's share of the votes, or the probability that it is more frequent than the second one where
    that is less."""

    method: Annotated[str, BY_GROUP] = "majority"

    def check(self) -> None:
        if self.reliability is not None:
            raise ValueError("search.reliability has no effect with search=majority: no scorer is used")


@dataclass(kw_only=True, slots=True)
class WeightedConfig(_OfChains):
    """The answer with the largest sum of scores among n independent chains.

    The confidence is the answer's share of this sum, or the score of its best chain where that is less."""

    method: Annotated[str, BY_GROUP] = "weighted"


@dataclass(kw_only=True, slots=True)
class BeamConfig(SearchConfig):
    """Beam search: n beams, of which the best n / width (rounded down) go on after every step, each with `width` next steps."""

    method: Annotated[str, BY_GROUP] = "beam"
    width: Annotated[int, Range(ge=1, le=256)] = 4
    """Next steps that are sampled after each beam that goes on. At most n."""
    lookahead: Annotated[int, Range(ge=0, le=64)] = 0
    """Further steps that are sampled after each beam, only to score the beam by where they lead."""
    distinct: bool = True
    """Beams with equal texts count as one."""

    def check(self) -> None:
        _check_width(self.width, self.n)


@dataclass(kw_only=True, slots=True)
class DvtsConfig(SearchConfig):
    """Diverse verifier tree search: n / width (rounded down) independent subtrees. In each, the best of `width` next steps is
    kept."""

    method: Annotated[str, BY_GROUP] = "dvts"
    width: Annotated[int, Range(ge=1, le=256)] = 4
    """Next steps that are sampled after each step that is kept. At most n."""
    lookahead: Annotated[int, Range(ge=0, le=64)] = 0
    """Further steps that are sampled after each next step, only to score it by where they lead."""
    round: Annotated[int, Range(ge=1, le=4096)] = 1
    """With search.accept: subtrees that are sampled before each look at whether it is reached."""

    def check(self) -> None:
        _check_width(self.width, self.n)


@dataclass(kw_only=True, slots=True)
class ParticleConfig(SearchConfig):
    """Particle filtering: n chains grow step by step, and are drawn again by their scores when these have become uneven."""

    method: Annotated[str, BY_GROUP] = "particle"
    resample_below: Annotated[float, Range(ge=0, le=1)] = 0.5
    """Chains are drawn again when the effective sample size of their weights falls below this share of n."""
    temperature: Annotated[float, Range(gt=0, le=100)] = 1.0
    """Weights are score ** (1 / temperature): less than 1 prefers the best chains more, more than 1 less."""


@dataclass(kw_only=True, slots=True)
class MctsConfig(SearchConfig):
    """Monte Carlo tree search with PUCT: n simulations. Each goes down to where score and curiosity are largest, and from there
    on samples `width` next steps and follows the best one, until a chain ends."""

    method: Annotated[str, BY_GROUP] = "mcts"
    width: Annotated[int, Range(ge=1, le=256)] = 4
    """Next steps that are sampled after a node."""
    exploration: Annotated[float, Range(ge=0, le=1000)] = 0.5
    """The constant c of PUCT: how much little-visited nodes are preferred."""
    parallel: Annotated[int, Range(ge=1, le=256)] = 4
    """Simulations of one problem that run at the same time. Each sees the others as visits without value (virtual loss)."""
    rollout: bool = False
    """A simulation samples next steps once, and then the rest of the chain from the best one at once: cheaper, but no score
    steers the rest."""


class RegenerateFrom(Enum):
    """The step from which a chain is written again."""

    weakest = "weakest"
    """The step with the lowest score."""
    largest_drop = "largest_drop"
    """The step whose score falls most below that of the step before. The first step's is compared with the mean of 0.5 and the
    scores of all first steps of the problem."""


@dataclass(kw_only=True, slots=True)
class RegenerateConfig(SearchConfig):
    """Writes a chain again from the step where it turned bad, and keeps the better one, n / chains times (rounded down)."""

    method: Annotated[str, BY_GROUP] = "regenerate"
    start: RegenerateFrom = RegenerateFrom.largest_drop
    """The step from which the chain is written again."""
    chains: Annotated[int, Range(ge=1, le=256)] = 2
    """Chains that are written again side by side. The first one is that of the input, if it has one. At most n."""

    def check(self) -> None:
        check(self.chains <= self.n, "search.chains", self.chains, f"at most search.n={self.n}")


def _check_width(width: int, n: int) -> None:
    check(width <= n, "search.width", width, f"at most search.n={n}")
