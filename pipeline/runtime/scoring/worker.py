"""What a worker of `score` does with chains: it scores them in blocks, and stores scores."""

from collections.abc import AsyncGenerator, Mapping, Sequence

import pyarrow as pa

from pipeline.config.score import ScoreConfig
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import ChainText, Totals
from pipeline.engines.base import Surroundings
from pipeline.runtime.chain_run.worker import ChainWorker, OneResultEach
from pipeline.runtime.scoring.calibrated import calibration_of, refuse_other
from pipeline.runtime.scoring.tables import scores_table
from pipeline.runtime.scoring.work import score_chains
from pipeline.runtime.worker import Snapshot
from pipeline.scorers.base import FAILED, Scorer, ScoringEngine, StepScores, unscored
from pipeline.scorers.registry import open_scorer, scorer_for
from pipeline.storage.location import storage_at
from pipeline.storage.score_files import TABLE, score_totals

CALL_CHAINS = 256
"""Chains of one call of an engine: few enough that a call is short against `run.flush_seconds`."""


class Scoring(OneResultEach[StepScores]):
    """See the module."""

    table = TABLE
    votes = 1

    def __init__(self, config: ScoreConfig, scorer: Scorer, engine: ScoringEngine) -> None:
        self._config = config
        self._scorer = scorer
        self._engine = engine
        self._calibration = calibration_of(config)
        self._scored = self._tokens = self._computed = self._running = 0

    @property
    def model(self) -> str:
        return self._engine.model

    @property
    def capacity(self) -> int:
        return self._engine.capacity

    async def fetch(self) -> None:
        await self._scorer.fetch()

    async def start(self) -> None:
        await self._engine.start()
        refuse_other(self._config, self._calibration, self._engine.model)

    async def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, StepScores], None]:
        rows = list(chains)
        for begin in range(0, len(rows), CALL_CHAINS):
            part = rows[begin : begin + CALL_CHAINS]
            self._running += len(part)
            try:
                scored = await score_chains(self._engine, [chains[row] for row in part])
            finally:
                self._running -= len(part)
            self._scored += len(scored)
            self._tokens += sum(each.n_tokens for each in scored)
            self._computed += sum(each.n_computed for each in scored)
            yield dict(zip(part, scored, strict=True))

    def failed(self, chain: ChainText) -> StepScores:
        return unscored(len(chain.steps), FAILED)

    def rows(self, chains: pa.Table, results: Sequence[StepScores]) -> pa.Table:
        return scores_table(
            chains,
            results,
            aggregation=self._config.aggregation,
            model=self._engine.model,
            calibration=self._calibration,
        )

    def totals(self, rows: pa.Table) -> Totals:
        return score_totals(rows)

    def snapshot(self) -> Snapshot:
        return Snapshot(
            rollouts=self._scored,
            tokens=self._tokens,
            work=EngineWork(prompt=self._tokens, prefilled=self._computed),
            load=Load(running=self._running),
        )

    async def close(self) -> None:
        await self._engine.close()


def scoring_worker(config: ScoreConfig, around: Surroundings) -> ChainWorker[StepScores]:
    """A worker of `score` in its own process."""
    work = Scoring(config, scorer_for(config.scorer), open_scorer(config.scorer, around))
    return ChainWorker(work, storage_at(config.out), config.run.flush_seconds)
