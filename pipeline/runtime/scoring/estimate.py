"""What a scoring would cost: `score --estimate` counts the chains, scores a sample in this process, and writes nothing."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.config.score import ScoreConfig
from pipeline.core.records import ChainText
from pipeline.runtime.chain_run.chains import LeftOutRows, chain_texts
from pipeline.runtime.chain_run.sample import sampled_chains
from pipeline.runtime.scoring.work import engine_here, score_chains, score_source
from pipeline.scorers.base import StepScores

SAMPLE = 256
"""Chains that are scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreEstimate:
    """What there is to score, and what a sample of it cost one worker of this machine. Tokens are those of the model's input
    and of what it wrote; `unscored`: chains of the sample with a step without a score, by reason; `seconds`: for all chains."""

    chains: int
    steps: int
    left_out: LeftOutRows
    sampled: int
    mean_tokens: float
    most_tokens: int
    unscored: Mapping[str, int]
    model: str
    seconds_loading: float
    chains_per_second: float
    seconds: float


def estimate_scores(config: ScoreConfig) -> ScoreEstimate:
    """Raises UsageError for an unusable model, InputError if there is no chain, and EngineDied."""
    sample = sampled_chains(score_source(config), SAMPLE)
    scored, loading, seconds, model = asyncio.run(_timed(config, chain_texts(sample.drawn)))
    tokens = [each.n_tokens for each in scored]
    return ScoreEstimate(
        chains=sample.chains,
        steps=sample.steps,
        left_out=sample.left_out,
        sampled=len(scored),
        mean_tokens=sum(tokens) / len(tokens),
        most_tokens=max(tokens),
        unscored=Counter(each.fault for each in scored if each.fault),
        model=model,
        seconds_loading=loading,
        chains_per_second=len(scored) / seconds,
        seconds=seconds * sample.weight,
    )


async def _timed(config: ScoreConfig, chains: list[ChainText]) -> tuple[list[StepScores], float, float, str]:
    """The scores of the chains, the seconds to load the model, those to score the chains, and the model."""
    engine = engine_here(config)
    try:
        began = time.monotonic()
        await engine.start()
        loaded = time.monotonic()
        await score_chains(engine, chains[:1])
        warm = time.monotonic()
        scored = await score_chains(engine, chains)
        return list(scored), loaded - began, max(time.monotonic() - warm, 1e-9), engine.model
    finally:
        await engine.close()
