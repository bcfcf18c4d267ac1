"""What the runtime of search costs the processor for each sampled step, beside its engines: asking, cutting, logging, deciding,
committing. `search_cpu` is about the machines alone.

Workers run in this process, and collect garbage as actors do.
"""

import asyncio
import gc
import tempfile
import time
from pathlib import Path

from pipeline.config.search import SearchRunConfig
from pipeline.core.records import ChainText, Completion, Request
from pipeline.engines.base import Surroundings
from pipeline.engines.oracle import OracleEngine
from pipeline.runtime.actors import GC_THRESHOLDS
from pipeline.runtime.searching.worker import Searching, searching_work
from pipeline.scorers.base import StepScores
from pipeline.scorers.oracle import OracleScoring
from pipeline.searches.registry import search_for
from tests.runtime.searching.starts import started
from tests.runtime.searching.tables import METHODS
from tests.searches.runs import settings, sums

PROBLEMS, N = 500, 16
WANTED = 200.0
"""Microseconds for each step and machine."""
_PERFECT = "scorer.oracle.auc=1"
"""Another one takes seconds to find its noise before the search begins."""


class _Clock:
    """Processor seconds within engines."""

    def __init__(self) -> None:
        self.seconds = 0.0


class _Policy(OracleEngine):
    clock: _Clock

    def _complete(self, request: Request, keep_tokens: bool) -> Completion:
        began = time.process_time()
        try:
            return super()._complete(request, keep_tokens)
        finally:
            self.clock.seconds += time.process_time() - began


class _Scoring(OracleScoring):
    clock: _Clock

    def _scores(self, chain: ChainText) -> StepScores:
        began = time.process_time()
        try:
            return super()._scores(chain)
        finally:
            self.clock.seconds += time.process_time() - began


def search_runtime() -> None:
    print(
        f"\nsearch: processor time of the runtime for each sampled step, wanted <= {WANTED:g} us; n = {N}, {PROBLEMS} problems"
    )
    microseconds("best_of_n", 8)
    for method in METHODS:
        print(f"  {method:<12}{microseconds(method, PROBLEMS):>7.0f} us", flush=True)


def microseconds(method: str, problems: int) -> float:
    """Of a run, for each sampled step."""
    clock = _Clock()

    def work(config: SearchRunConfig, around: Surroundings) -> Searching:
        usual = searching_work(config, around)
        policy = _Policy(config.policy)  # type: ignore[arg-type]  # the oracle's
        scoring = None
        policy.clock = clock
        if usual.scoring is not None:
            scoring = _Scoring.__new__(_Scoring)
            scoring.__dict__.update(vars(usual.scoring), clock=clock)
        return Searching(config, search_for(config.search), policy, scoring)

    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        with tempfile.TemporaryDirectory(prefix="stepvalue-search-") as folder:
            config = settings(Path(folder), sums(problems), f"search={method}", f"search.n={N}", _PERFECT)
            began = time.process_time()
            found = started(config, work=work, run=asyncio.run)
            spent = time.process_time() - began - clock.seconds
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
    return spent / found.totals.prefixes * 1e6
