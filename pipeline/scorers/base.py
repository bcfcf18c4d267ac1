"""The interfaces of a process reward model before it is loaded (`Scorer`) and of the engine that scores with it
(`ScoringEngine`): a problem and its steps -> a score in [0, 1] for each step, with the token at which it is read.

What a score means depends on the model: for one trained on Monte Carlo values, the probability that a solution which begins
like this ends right; for one trained on people's labels, the probability that the step is correct. No scorer turns one into the
other.

A model that is read at one token of each step is a `model.ModelScorer` and needs no engine of its own.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pipeline.config.label import DataConfig
from pipeline.config.score import ScorerConfig
from pipeline.core.records import FAILED as FAILED
from pipeline.core.records import TOO_LONG as TOO_LONG
from pipeline.core.records import UNREADABLE as UNREADABLE
from pipeline.core.records import ChainText
from pipeline.engines.base import ChainEngine, OnDevices, Policy, Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScores:
    """The scores of a chain's steps. All tuples have one entry per step.

    `scores`: in [0, 1]; None for a step without a score, and `fault` says why: TOO_LONG, UNREADABLE or FAILED. `positions`: the
    index, in the tokens that the model reads, of the token at which a score is read, from 0; None where it is read from a text.
    `reliability`: how sure the model is of each score, in [0, 1]; None where its head does not say. `n_tokens`: tokens of the
    input and of what the model wrote. `n_computed`: how many it computed; the others were in its cache. Where a chain takes
    several requests, a token that is not in the cache counts each time.
    """

    scores: tuple[float | None, ...]
    positions: tuple[int | None, ...]
    reliability: tuple[float, ...] | None = None
    fault: str = ""
    n_tokens: int = 0
    n_computed: int = 0


class ScoringEngine(ChainEngine, Protocol):
    """Scores chains."""

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        """The scores of each chain, in the order given. Raises EngineDied when the engine stops working."""
        ...


class Scorer(OnDevices, Protocol):
    """A kind of process reward model with its settings, before anything is loaded. An implementation defines `engine`."""

    Config: ClassVar[type[ScorerConfig]] = ScorerConfig
    """Its settings: a subclass of `ScorerConfig` whose `kind` is the scorer's name."""

    settings: ScorerConfig

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def engine(self, around: Surroundings, *, newest_only: bool = False) -> ScoringEngine:
        """A new engine, not started. `newest_only`: only the last step of each chain gets a score, as a search needs it that
        scores a chain after every step; what is common with earlier chains may come from a cache."""
        ...

    def warnings(self, data: DataConfig) -> Sequence[str]:
        """What is worse for the scores than it need be, with steps of texts that these settings divide; as far as it is known
        without loading anything."""
        return ()

    def warnings_beside(self, policy: Policy) -> Sequence[str]:
        """Why scores of this policy's chains mean less than they seem to, as far as the settings show it."""
        return ()

    def states_reliability(self) -> bool | None:
        """Whether scores have a reliability; None where that is not known without loading the model."""
        return None

    def with_tensor_parallel(self, gpus: int) -> ScorerConfig:
        """The settings of a worker whose model is spread over `gpus` GPUs."""
        return self.settings


def unscored(steps: int, fault: str) -> StepScores:
    """The result for a chain without any score."""
    return StepScores(scores=(None,) * steps, positions=(None,) * steps, fault=fault)


def wrong_scores(found: Sequence[StepScores], chains: Sequence[ChainText]) -> str:
    """What is wrong with the answer of `ScoringEngine.score`, or an empty text."""
    if len(found) != len(chains):
        return f"it scored {len(found)} of {len(chains)} chains"
    for each, chain in zip(found, chains, strict=True):
        steps = len(chain.steps)
        if len(each.scores) != steps or len(each.positions) != steps:
            return f"chain {chain.chain_id} of {steps} steps has {len(each.scores)} scores"
        if any(score is not None and not 0.0 <= score <= 1.0 for score in each.scores):
            return f"chain {chain.chain_id} has a score outside 0 to 1"
        if each.reliability is not None and len(each.reliability) != steps:
            return f"chain {chain.chain_id} of {steps} steps has {len(each.reliability)} reliabilities"
        if each.scores[-1:] == (None,) and not each.fault:
            return f"chain {chain.chain_id} has a last step without a score, and no reason"
    return ""


ANSWERS: Mapping[str, Callable[..., str]] = {"score": wrong_scores}
