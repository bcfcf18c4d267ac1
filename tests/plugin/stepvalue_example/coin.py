"""A policy that answers by tossing a coin for each rollout: right with the chance `policy.coin.heads`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, ClassVar

from annotated_types import Ge, Interval

from pipeline.config.fields import BY_GROUP, FREE, Settings
from pipeline.config.label import PolicyConfig, SamplingConfig
from pipeline.core.records import Completion, Finish, Request
from pipeline.engines.base import BatchEngine, Engine, Policy, PolicyFacts, Surroundings
from pipeline.engines.oracle import ByteTokenizer
from pipeline.graders.base import Ending


@dataclass(kw_only=True, slots=True)
class CoinConfig(Settings):
    SECTION: ClassVar[str] = "policy.coin"
    heads: Annotated[float, Interval(ge=0, le=1)] = 0.5
    """The chance of a right answer."""
    fail_after: Annotated[int, Ge(0), FREE] = 0
    """It raises an error of its own after this number of rollouts; 0: never."""


@dataclass(kw_only=True, slots=True)
class CoinPolicyConfig(PolicyConfig):
    kind: Annotated[str, BY_GROUP] = "coin"
    coin: CoinConfig = field(default_factory=CoinConfig)


class CoinEngine(BatchEngine):
    def __init__(self, settings: CoinPolicyConfig) -> None:
        super().__init__(ByteTokenizer(), policy=f"coin:{settings.coin.heads:g}", max_model_len=100_000)
        self._coin = settings.coin
        self._tossed = 0

    async def complete(self, requests: Sequence[Request]) -> list[Completion]:
        self._tossed += len(requests)
        if 0 < self._coin.fail_after < self._tossed:
            raise ZeroDivisionError("the coin is lost")
        return [self._tossed_for(request) for request in requests]

    def _tossed_for(self, request: Request) -> Completion:
        right = Random(request.request_id).random() < self._coin.heads
        answer = request.problem.golds[0] if right else "I do not know"
        text = f"The answer is {answer}."
        return Completion(request=request, text=text, finish=Finish.STOP, n_tokens=len(text))


class Coin(Policy):
    Config = CoinPolicyConfig
    settings: CoinPolicyConfig

    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        return CoinEngine(self.settings)

    async def facts(self, sampling: SamplingConfig) -> PolicyFacts:
        return CoinEngine(self.settings)
