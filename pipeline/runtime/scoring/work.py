"""The chains that `score` scores; scores them with an engine, and checks its answers."""

import os
from collections.abc import Sequence

from pipeline.config.score import ScoreConfig
from pipeline.core.errors import EngineDied
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.scorers.base import ScoringEngine, StepScores, wrong_scores
from pipeline.scorers.registry import open_scorer, scorer_for


def engine_here(config: ScoreConfig) -> ScoringEngine:
    """The engine of the settings in this process, not started. It may use all cores that this process has.

    Raises UsageError for a scorer that is not installed, and for a model folder that is not there."""
    scorer_for(config.scorer).fingerprint()
    return open_scorer(config.scorer, Surroundings(cpus=len(os.sched_getaffinity(0))))


async def score_chains(engine: ScoringEngine, chains: Sequence[ChainText]) -> Sequence[StepScores]:
    """The scores of each chain, in order. Raises EngineDied if the engine dies or gives impossible scores."""
    found = await engine.score(chains)
    if wrong := wrong_scores(found, chains):
        raise EngineDied(f"the scorer gave a wrong answer: {wrong}")
    return found
