"""What the runtime of search costs the processor for each sampled step, beside its engines: asking, cutting, logging, deciding,
committing. `search_cpu` is about the machines alone.

Workers run in this process, and collect garbage as actors do. Each search runs twice: engines remember what they answered in
the first run, so that the second one, which counts, costs them nothing. No clock is read between: where programs run in a
sandbox, reading one that counts processor time may take 50 us.
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


class _Answers:
    """What the engines of a run answered: of the policy by request, of the scorer by chain. A second run of the same searches
    asks the same, and gets it at once."""

    def __init__(self) -> None:
        self.completions: dict[str, Completion] = {}
        self.scores: dict[str, StepScores] = {}


class _Policy(OracleEngine):
    answers: _Answers

    def _complete(self, request: Request, keep_tokens: bool) -> Completion:
        known = self.answers.completions
        if request.request_id not in known:
            known[request.request_id] = super()._complete(request, keep_tokens)
        return known[request.request_id]


class _Scoring(OracleScoring):
    answers: _Answers

    def _scores(self, chain: ChainText) -> StepScores:
        known = self.answers.scores
        if chain.chain_id not in known:
            known[chain.chain_id] = super()._scores(chain)
        return known[chain.chain_id]


def search_runtime() -> None:
    print(
        f"\nsearch: processor time of the runtime for each sampled step, wanted <= {WANTED:g} us; n = {N}, {PROBLEMS} problems"
    )
    microseconds("best_of_n", 8)
    for method in METHODS:
        print(f"  {method:<12}{microseconds(method, PROBLEMS):>7.0f} us", flush=True)


def microseconds(method: str, problems: int) -> float:
    """Of a run whose engines know all answers, for each sampled step."""
    answers = _Answers()
    _run(method, problems, answers)
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        spent, steps = _run(method, problems, answers)
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
    return spent / steps * 1e6


def _run(method: str, problems: int, answers: _Answers) -> tuple[float, int]:
    """Processor seconds of a run, and its sampled steps."""

    def work(config: SearchRunConfig, around: Surroundings) -> Searching:
        usual = searching_work(config, around)
        policy = _Policy(config.policy)  # type: ignore[arg-type]  # the oracle's
        scoring = None
        policy.answers = answers
        if usual.scoring is not None:
            scoring = _Scoring.__new__(_Scoring)
            scoring.__dict__.update(vars(usual.scoring), answers=answers)
        return Searching(config, search_for(config.search), policy, scoring)

    with tempfile.TemporaryDirectory(prefix="stepvalue-search-") as folder:
        config = settings(Path(folder), sums(problems), f"search={method}", f"search.n={N}", _PERFECT)
        began = time.process_time()
        found = started(config, work=work, run=asyncio.run)
        return time.process_time() - began, found.totals.prefixes
