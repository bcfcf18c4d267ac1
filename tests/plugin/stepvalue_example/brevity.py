"""A scorer that likes short steps: a score falls by half for every `half` characters of the step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt

from pipeline.config.fields import BY_GROUP
from pipeline.config.score import ScorerConfig
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.scorers.base import Scorer, ScoringEngine, StepScores


@dataclass(kw_only=True, slots=True)
class BrevityConfig(ScorerConfig):
    kind: Annotated[str, BY_GROUP] = "brevity"
    half: Annotated[float, Gt(0)] = 20.0
    """Characters that halve a score."""
    most: float = 1.0
    """The score of an empty step. Above 1 it is no score, which the tests want to see refused."""


class Engine:
    """Scores chains at once: there is no model."""

    capacity = 64
    model = "brevity"

    def __init__(self, settings: BrevityConfig) -> None:
        self._settings = settings

    async def start(self) -> None:
        return

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        own = self._settings
        return [
            StepScores(
                scores=tuple(own.most * 0.5 ** (len(step) / own.half) for step in chain.steps),
                positions=(None,) * len(chain.steps),
            )
            for chain in chains
        ]

    async def close(self) -> None:
        return


class Brevity(Scorer):
    Config = BrevityConfig
    settings: BrevityConfig

    def engine(self, around: Surroundings, *, newest_only: bool = False) -> ScoringEngine:
        return Engine(self.settings)
