"""A scorer of your own: it likes short steps.

    python -m pipeline.examples.scorer

labels two chains in the folder `scored` and writes the scores of their steps into `scored.jsonl`. The oracle stands in for a
policy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Gt

from pipeline import label
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


class BrevityEngine:
    capacity = 64
    model = "brevity"

    def __init__(self, settings: BrevityConfig) -> None:
        self._half = settings.half

    async def start(self) -> None:
        return

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        return [
            StepScores(
                scores=tuple(0.5 ** (len(step) / self._half) for step in chain.steps),
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
        return BrevityEngine(self.settings)


ROWS = [
    {"problem": "What is 2 + 3 + 4?", "answer": "9", "steps": ["2 + 3 = 5.", "5 + 4 = 9.", "The answer is 9."]},
    {"problem": "What is 2 + 3 + 4?", "answer": "9", "steps": ["2 + 3 = 6.", "6 + 4 = 10.", "The answer is 10."]},
]


def main() -> None:
    """Label, score, and show the rows."""
    run = label(ROWS, policy="oracle", estimator="fixed", run_dir="scored")
    run.score("scored.jsonl", scorer=Brevity(BrevityConfig(half=10)))
    print(Path("scored.jsonl").read_text("utf-8"))


if __name__ == "__main__":
    main()
