"""How long a search takes, and how many tokens: it searches a sample in this process, and writes nothing."""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pipeline.config.search import SearchRunConfig
from pipeline.engines.base import Surroundings
from pipeline.runtime.chain_run.chains import LeftOutRows
from pipeline.runtime.chain_run.sample import sampled_chains
from pipeline.runtime.searching.devices import divided
from pipeline.runtime.searching.problems import search_source
from pipeline.runtime.searching.run import check_search
from pipeline.runtime.searching.unit import UnitSearches
from pipeline.runtime.searching.worker import Searching, searching_work
from pipeline.searches.problem import ProblemSearch, search_problems
from pipeline.storage.location import storage_at

SAMPLE = 32
"""Problems that are searched: a search takes many samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEstimate:
    """What there is to search, and what a sample of it cost one worker of this machine. Tokens are means for a problem: those
    that the policy generated, and those that the scorer computed. `seconds`: for all problems."""

    problems: int
    sampled: int
    left_out: LeftOutRows
    policy_tokens: float
    scorer_tokens: float
    model: str
    seconds_loading: float
    seconds: float


def estimate_search(config: SearchRunConfig) -> SearchEstimate:
    """Raises UsageError for an unusable method, policy or scorer, InputError if there is no problem, PolicyError and
    EngineDied."""
    config = divided(replace(config, run_dir=storage_at(config.run_dir).run_dir))
    check_search(config)
    sample = sampled_chains(search_source(config), SAMPLE)
    work = searching_work(config, Surroundings(cpus=len(os.sched_getaffinity(0))))
    searches, loading, seconds = asyncio.run(_timed(work, sample.drawn, config.data.separator))
    return SearchEstimate(
        problems=sample.chains,
        sampled=len(searches),
        left_out=sample.left_out,
        policy_tokens=sum(each.n_tokens for search in searches for each in search.samples.values()) / len(searches),
        scorer_tokens=sum(each.n_computed for search in searches for each in search.scores.values()) / len(searches),
        model=work.model,
        seconds_loading=loading,
        seconds=seconds * sample.chains / len(searches),
    )


async def _timed(work: Searching, problems: pa.Table, separator: str) -> tuple[Sequence[ProblemSearch], float, float]:
    """The searches of the problems, the seconds to load the models, and those to search."""
    try:
        await work.fetch()
        began = time.monotonic()
        await work.start()
        loaded = time.monotonic()
        unit = UnitSearches(work, search_problems(problems, separator))
        async for _ in unit.results(unit.missing()):
            pass
        return list(unit.searches.values()), loaded - began, max(time.monotonic() - loaded, 1e-9)
    finally:
        await work.close()
