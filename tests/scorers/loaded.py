"""Scores chains with a scorer on transformers, and encodes them without a model, for the tests of scorers."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pipeline.config.score import ScorerConfig
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.scorers.base import StepScores
from pipeline.scorers.encoding import EncodedChain
from pipeline.scorers.model import ModelScorer, Reading
from pipeline.scorers.registry import SCORERS, open_scorer
from pipeline.scorers.settings import ModelEngine, ModelScorerConfig


def chain(number: int, problem: str, *steps: str) -> ChainText:
    prefixes = tuple(f"{problem}{steps[: end + 1]}" for end in range(len(steps)))
    return ChainText(chain_id=f"c{number}", problem_id=problem, problem=problem, steps=steps, prefix_ids=prefixes)


def scored(
    settings: ScorerConfig,
    chains: Sequence[ChainText],
    *,
    newest_only: bool = False,
    then: Callable[[], object] | None = None,
) -> Sequence[StepScores]:
    """The scores of the chains, by an engine of their own: transformers, which loads in a moment, for models. `then`: what
    happens between its start and its work."""
    if isinstance(settings, ModelScorerConfig):
        settings = replace(settings, engine=ModelEngine.transformers)

    async def run() -> Sequence[StepScores]:
        engine = open_scorer(settings, Surroundings(), newest_only=newest_only)
        try:
            await engine.start()
            if then:
                then()
            return await engine.score(chains)
        finally:
            await engine.close()
            await engine.close()

    return asyncio.run(asyncio.wait_for(run(), 300))


def reading(settings: ScorerConfig, tokenizer: Any, config: Any = None) -> Reading:
    """How the scorer reads chains with this tokenizer."""
    scorer: Any = SCORERS.load(settings.kind)(settings)
    assert isinstance(scorer, ModelScorer)
    return scorer.reading(tokenizer, config)


def encoded(
    settings: ScorerConfig, tokenizer: Any, problem: str, steps: Sequence[str], max_length: int = 100_000
) -> EncodedChain:
    return reading(settings, tokenizer).encode(problem, steps, max_length)
