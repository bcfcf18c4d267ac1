"""What a scoring would cost: `score --estimate` counts the chains, scores a sample of them in this process, and writes nothing.

The time of all chains is that of the sample times the ratio of their numbers of characters: what a model computes grows with
the length of its input.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappush, heapreplace

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.score import ScoreConfig
from pipeline.core.records import ChainText
from pipeline.runtime.scoring.chains import LeftOutRows, chain_tables, chain_texts, refuse_none, values
from pipeline.runtime.scoring.work import engine_here, score_chains
from pipeline.scorers.base import StepScores

SAMPLE = 256
"""Chains that are scored: those with the smallest ids. Ids are hashes, so the sample is random, and the same each time."""


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
    left_out = LeftOutRows()
    chains = steps = characters = 0
    sample: list[tuple[int, int, pa.Table]] = []
    for table in chain_tables(config, left_out):
        first = chains
        chains += table.num_rows
        steps += int(pc.sum(pc.list_value_length(table["steps"])).as_py() or 0)
        characters += _characters(table)
        for chain_id, row in zip(values(table, "chain_id"), values(table, "row"), strict=True):
            # Negative, so that the largest of the smallest ids is the one that leaves the heap.
            rank = -int(chain_id, 16)
            if len(sample) < SAMPLE:
                heappush(sample, (rank, row, table.slice(row - first, 1)))
            elif rank > sample[0][0]:
                heapreplace(sample, (rank, row, table.slice(row - first, 1)))
    refuse_none(config, chains, left_out)
    drawn = pa.concat_tables([table for _, _, table in sorted(sample, key=lambda each: each[1])])
    scored, loading, seconds, model = asyncio.run(_timed(config, chain_texts(drawn)))
    tokens = [each.n_tokens for each in scored]
    return ScoreEstimate(
        chains=chains,
        steps=steps,
        left_out=left_out,
        sampled=len(scored),
        mean_tokens=sum(tokens) / len(tokens),
        most_tokens=max(tokens),
        unscored=Counter(each.fault for each in scored if each.fault),
        model=model,
        seconds_loading=loading,
        chains_per_second=len(scored) / seconds,
        seconds=seconds * characters / max(1, _characters(drawn)),
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


def _characters(table: pa.Table) -> int:
    texts = [*values(table, "problem"), *(step for steps in values(table, "steps") for step in steps)]
    return sum(map(len, texts))
