"""The task `score`: a process reward model scores the steps of chains."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.config.choices import Aggregation
from pipeline.config.score import ScoreConfig
from pipeline.config.search import SearchRunConfig
from pipeline.core.errors import RUN_DIR, EngineDied, named
from pipeline.core.ids import content_id
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import ChainText, Tally
from pipeline.core.table import Table
from pipeline.core.tables import CALIBRATED_SCORES, RAW_STEP_SCORES, SCORES, ScoreColumns
from pipeline.engines.base import OnDevices, Surroundings
from pipeline.runtime.chain_run.given import GivenTask
from pipeline.runtime.chain_run.worker import ChainWork
from pipeline.runtime.state import section_identity
from pipeline.runtime.worker import Snapshot
from pipeline.scorers.base import FAILED, Scorer, ScoringEngine, StepScores, unscored, wrong_scores
from pipeline.scorers.calibration import Calibration
from pipeline.scorers.calibration_file import read_calibration, refuse_other_model
from pipeline.scorers.chain_scores import chain_score, chain_scores
from pipeline.scorers.registry import open_scorer, scorer_for
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import OTHER_RUN, SCORE
from pipeline.storage.score_files import score_tally
from pipeline.storage.storage import Storage

CALL_CHAINS = 256
"""Chains of one call of an engine: few enough that a call is short against `run.flush_seconds`."""


class ScoreTask(GivenTask[ScoreConfig]):
    """Scores all chains into the folder `out`."""

    name, doing = SCORE, "scoring"
    to_do, done, results, elsewhere = "score", "scored", "scores", "another out"
    sample = 256

    def __init__(self, config: ScoreConfig) -> None:
        with named({RUN_DIR: "out"}):
            super().__init__(replace(config, out=storage_at(config.out).run_dir))

    @property
    def names(self) -> Mapping[str, str]:
        return {RUN_DIR: "out", OTHER_RUN: "belongs to another run: use another out"}

    def storage(self) -> Storage:
        return storage_at(self.config.out)

    def determines(self) -> dict[str, object]:
        config, scorer = self.config, scorer_for(self.config.scorer)
        return {
            "scorer_fingerprint": scorer.fingerprint(),
            "aggregation": config.aggregation.value,
            "calibration": calibration_id(config),
            **section_identity("scorer", config.scorer),
            **scorer.identity(),
        }

    def model(self) -> OnDevices:
        return scorer_for(self.config.scorer)

    def spread(self, parts: int) -> ScoreConfig:
        return replace(self.config, scorer=scorer_for(self.config.scorer).with_tensor_parallel(parts))

    def work(self, around: Surroundings) -> "Scoring":
        scorer = scorer_for(self.config.scorer)
        return Scoring(self.config, scorer, open_scorer(self.config.scorer, around))


class Scoring(ChainWork[StepScores]):
    """Scores chains in blocks."""

    def __init__(self, config: ScoreConfig, scorer: Scorer, engine: ScoringEngine) -> None:
        self._config = config
        self._scorer = scorer
        self.engine = engine
        self._calibration = calibration_of(config)
        self.table = scores_with(self._calibration)
        self._scored = self._tokens = self._computed = self._running = 0

    async def fetch(self) -> None:
        await self._scorer.fetch()

    async def load(self) -> tuple[str, int]:
        await self.engine.start()
        refuse_other(self._config, self._calibration, self.engine.model)
        return self.engine.model, self.engine.capacity

    async def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, StepScores], None]:
        rows = list(chains)
        for begin in range(0, len(rows), CALL_CHAINS):
            part = rows[begin : begin + CALL_CHAINS]
            self._running += len(part)
            try:
                scored = await score_chains(self.engine, [chains[row] for row in part])
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
            model=self.engine.model,
            calibration=self._calibration,
        )

    def tally(self, rows: pa.Table) -> Tally:
        return score_tally(rows)

    def counted(self) -> Snapshot:
        return Snapshot(
            rollouts=self._scored,
            tokens=self._tokens,
            work=EngineWork(prompt=self._tokens, prefilled=self._computed),
            load=Load(running=self._running),
        )

    async def close(self) -> None:
        await self.engine.close()


async def score_chains(engine: ScoringEngine, chains: Sequence[ChainText]) -> Sequence[StepScores]:
    """The scores of each chain, in order. Raises EngineDied if the engine dies or gives impossible scores."""
    found = await engine.score(chains)
    if wrong := wrong_scores(found, chains):
        raise EngineDied(f"the scorer gave a wrong answer: {wrong}")
    return found


def scores_table(
    chains: pa.Table,
    scored: Sequence[StepScores],
    *,
    aggregation: Aggregation,
    model: str,
    calibration: Calibration | None = None,
) -> pa.Table:
    """The rows of scored chains. `chains`: of the table CHAINS, in the order of `scored`. With a calibration the rows are of
    CALIBRATED_SCORES."""
    raw = [each.scores for each in scored]
    step_scores = raw if calibration is None else [calibration.apply(scores) for scores in raw]
    whole = [chain_scores(scores) for scores in step_scores]
    computed: dict[str, list[Any]] = {
        "step_scores": list(step_scores),
        RAW_STEP_SCORES: raw,
        "step_positions": [each.positions for each in scored],
        "reliability": [each.reliability for each in scored],
        "n_scored": [sum(score is not None for score in each.scores) for each in scored],
        "fault": [each.fault or None for each in scored],
        "n_tokens": [each.n_tokens for each in scored],
        **{name: [each[name] for each in whole] for name in chain_scores(())},
        "score": [chain_score(scores, aggregation) for scores in step_scores],
        "model": [model] * len(scored),
    }
    return scores_with(calibration).of_columns({**{name: chains[name] for name in chains.column_names}, **computed})


def scores_with(calibration: Calibration | None) -> Table[ScoreColumns]:
    """The table of scores, with a calibration or without."""
    return SCORES if calibration is None else CALIBRATED_SCORES


def calibration_of(config: ScoreConfig | SearchRunConfig) -> Calibration | None:
    """The calibration of the settings; None without one. Raises InputError for a file that holds none."""
    return None if config.calibration is None else read_calibration(config.calibration)


def refuse_other(config: ScoreConfig | SearchRunConfig, calibration: Calibration | None, model: str) -> None:
    """Raise UsageError for a calibration of another model than that of the scores, unless the settings accept it."""
    if calibration is not None and not config.other_model:
        refuse_other_model(calibration, model, f"calibration={config.calibration}")


def calibration_id(config: ScoreConfig | SearchRunConfig) -> str | None:
    """A hash of the calibration's file; None without one. Raises InputError as `calibration_of` does."""
    if calibration_of(config) is None:
        return None
    return content_id("calibration", Path(str(config.calibration)).expanduser().read_text("utf-8"))
