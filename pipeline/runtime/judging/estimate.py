"""What judging would cost: `judge --estimate` counts the chains, judges a sample in this process, and writes nothing."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.config.judge import JudgeRunConfig
from pipeline.core.records import ChainText, ReadingKind
from pipeline.engines.base import Surroundings
from pipeline.runtime.chain_run.chains import chain_texts
from pipeline.runtime.chain_run.sample import sampled_chains
from pipeline.runtime.judging.run import checked_judge, judge_source
from pipeline.runtime.judging.worker import Judging, Votes, judging_work
from pipeline.storage.location import storage_at

SAMPLE = 32
"""Chains that are judged: critiques are long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEstimate:
    """What there is to judge, and what a sample of it cost one worker of this machine. Tokens are means for a chain, of all its
    votes; `kinds`: critiques of the sample by how they are read; `seconds`: for all chains."""

    chains: int
    steps: int
    sampled: int
    mean_read: float
    mean_written: float
    kinds: Mapping[ReadingKind, int]
    model: str
    seconds_loading: float
    chains_per_second: float
    seconds: float


def estimate_critiques(config: JudgeRunConfig) -> JudgeEstimate:
    """Raises UsageError for an unusable judge, model or run, InputError if there is no chain, PolicyError and EngineDied."""
    config = replace(config, run_dir=storage_at(config.run_dir).run_dir)
    checked_judge(config)
    sample = sampled_chains(judge_source(config), SAMPLE)
    work = judging_work(config, Surroundings(cpus=len(os.sched_getaffinity(0))))
    judged, loading, seconds = asyncio.run(_timed(work, chain_texts(sample.drawn)))
    votes = [vote for each in judged for vote in each]
    return JudgeEstimate(
        chains=sample.chains,
        steps=sample.steps,
        sampled=len(judged),
        mean_read=sum(vote.n_prompt_tokens for vote in votes) / len(judged),
        mean_written=sum(vote.n_tokens for vote in votes) / len(judged),
        kinds=Counter(vote.reading.kind for vote in votes),
        model=work.model,
        seconds_loading=loading,
        chains_per_second=len(judged) / seconds,
        seconds=seconds * sample.weight,
    )


async def _timed(work: Judging, chains: list[ChainText]) -> tuple[list[Votes], float, float]:
    """The critiques of the chains, the seconds to load the model, and those to judge the chains."""
    try:
        await work.fetch()
        began = time.monotonic()
        await work.start()
        loaded = time.monotonic()
        judged = {row: votes async for part in work.results(dict(enumerate(chains))) for row, votes in part.items()}
        seconds = max(time.monotonic() - loaded, 1e-9)
        return [judged[row] for row in range(len(chains))], loaded - began, seconds
    finally:
        await work.close()
