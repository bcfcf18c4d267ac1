"""Scores chains with an engine, and checks its answers."""

from collections.abc import Sequence

from pipeline.core.errors import EngineDied
from pipeline.scorers.base import ChainText, ScoringEngine, StepScores, wrong_scores


async def score_chains(engine: ScoringEngine, chains: Sequence[ChainText]) -> Sequence[StepScores]:
    """The scores of each chain, in order. Raises EngineDied if the engine dies or gives impossible scores."""
    found = await engine.score(chains)
    if wrong := wrong_scores(found, chains):
        raise EngineDied(f"the scorer gave a wrong answer: {wrong}")
    return found
