"""The task `judge`: a second model criticises the chains of a run.

The reading of a critique is that of its stored text, so that `audit` and `regrade` find it again.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from pipeline.config.judge import JudgeRunConfig
from pipeline.core.errors import EngineDied, UsageError
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import ChainText, Critique, Finish, Reading, ReadingKind, Tally
from pipeline.core.table import storable
from pipeline.core.tables import CHAINS, CHAINS_WITH_ANSWERS, CRITIQUES, critiques_table
from pipeline.engines.base import Engine, OnDevices, Surroundings
from pipeline.engines.registry import open_engine, policy_for
from pipeline.engines.settings import EmbeddedConfig
from pipeline.judges import PARSER_VERSION
from pipeline.judges.base import Judge, JudgingEngine, read_critique, wrong_critiques
from pipeline.judges.registry import judge_for, open_judge
from pipeline.runtime.chain_run.chain_task import ChainTask, chain_texts, values
from pipeline.runtime.chain_run.worker import ChainWork, side_by_side
from pipeline.runtime.state import section_identity
from pipeline.runtime.worker import Snapshot
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import JUDGE, OTHER_RUN
from pipeline.storage.storage import Storage
from pipeline.storage.stored_critiques import JUDGE_RUNS, critique_tally

Votes = Sequence[Critique]
"""The critiques of a chain."""


class JudgeTask(ChainTask[JudgeRunConfig]):
    """Judges all chains of the run in `run_dir`, into its folder `judges/NAME`. The counts are those of
    `stored_critiques.critique_tally`."""

    name, doing, counted = JUDGE, "judging", "critiques"
    to_do, done, results, elsewhere = "judge", "judged", "critiques", "another judge.name"

    def __init__(self, config: JudgeRunConfig) -> None:
        """Raises UsageError for a judge that is not installed, has no name, or writes and has no model."""
        super().__init__(replace(config, run_dir=storage_at(config.run_dir).run_dir))
        self._judge = checked_judge(config)

    def storage(self) -> Storage:
        return JUDGE_RUNS.at(storage_at(self.config.run_dir), self.config.judge.name)

    @property
    def names(self) -> Mapping[str, str]:
        has = f"has the critiques of judge.name={self.config.judge.name} with other settings: choose another judge.name"
        return {OTHER_RUN: has}

    def determines(self) -> dict[str, object]:
        config, judge = self.config, self._judge
        fields: dict[str, object] = {
            "parser_version": PARSER_VERSION,
            **section_identity("judge", config.judge),
            **judge.identity(),
        }
        if judge.writes:
            policy = policy_for(config.policy)
            fields |= {
                "policy_fingerprint": policy.fingerprint(),
                **section_identity("policy", config.policy),
                **policy.identity(),
            }
        return fields

    @property
    def schema(self) -> pa.Schema:
        # Known answers are among them only with `judge.show_answer`.
        return (CHAINS_WITH_ANSWERS if self.config.judge.show_answer else CHAINS).schema

    def model(self) -> OnDevices:
        return policy_for(self.config.policy) if self._judge.writes else super().model()

    def spread(self, parts: int) -> JudgeRunConfig:
        if not self._judge.writes:
            return self.config
        return replace(self.config, policy=policy_for(self.config.policy).with_tensor_parallel(parts))

    def work(self, around: Surroundings) -> "Judging":
        config, judge = self.config, self._judge
        text_engine = open_engine(config.policy, judge.sampling(), None, around) if judge.writes else None
        return Judging(config, judge, open_judge(config.judge, text_engine, around), text_engine)


def checked_judge(config: JudgeRunConfig) -> Judge:
    """The judge of the settings. Raises UsageError for one that is not installed, has no name, or writes and has no model."""
    judge = judge_for(config.judge)
    if config.judge.name == "???":
        raise UsageError("judge.name is not set: give judge.name=NAME, your name for this judge")
    if judge.writes and config.policy.kind == EmbeddedConfig.usual():
        raise UsageError(
            f"judge={config.judge.kind} writes with a model: give policy.model=NAME_OR_FOLDER, or policy=openai with "
            "policy.model and policy.openai.urls"
        )
    if judge.writes:
        try:
            config.policy.check_complete(judge.sampling())
        except ValueError as error:
            raise UsageError(str(error)) from error
    return judge


class Judging(ChainWork[Votes]):
    """What a worker does: a judge criticises as many chains at once as keep its engine busy. `text_engine`: what writes for
    the judge; None where nothing does."""

    table = CRITIQUES

    def __init__(self, config: JudgeRunConfig, judge: Judge, engine: JudgingEngine, text_engine: Engine | None) -> None:
        self._config = config
        self._judge = judge
        self._engine = engine
        self._text_engine = text_engine
        self._free = asyncio.Semaphore(0)
        self._written = self._tokens = self._read = self._running = 0
        self.votes = config.judge.votes

    async def fetch(self) -> None:
        if self._text_engine is not None:
            await policy_for(self._config.policy).fetch()

    async def load(self) -> tuple[str, int]:
        await self._engine.start()
        self._free = asyncio.Semaphore(self._engine.capacity)
        return self._engine.model, self._engine.capacity

    def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, Votes], None]:
        return side_by_side(chains, self._votes)

    def failed(self, chain: ChainText) -> Votes:
        reading = Reading(kind=ReadingKind.FAILED)
        return [Critique(turns=(), finish=Finish.ENGINE_FAILED, reading=reading)] * self.votes

    def rows(self, chains: pa.Table, results: Sequence[Votes]) -> pa.Table:
        judged = list(zip(values(chains, "row"), chain_texts(chains), results, strict=True))
        return critiques_table(judged, judge=self._config.judge.name, model=self._engine.model)

    def tally(self, rows: pa.Table) -> Tally:
        return critique_tally(rows, self.votes)

    def counted(self) -> Snapshot:
        text_engine = self._text_engine
        counted = Snapshot(rollouts=self._written, tokens=self._tokens)
        if text_engine is not None:
            return replace(counted, work=text_engine.work, load=text_engine.load, hardware=text_engine.hardware)
        work = EngineWork(generated=self._tokens, finished=self._tokens, prompt=self._read, prefilled=self._read)
        return replace(counted, work=work, load=Load(running=self._running))

    async def close(self) -> None:
        await self._engine.close()

    async def _votes(self, _row: int, chain: ChainText) -> Votes:
        """The critiques of a chain, each with the reading of its stored text. Raises EngineDied for impossible ones."""
        async with self._free:
            self._running += self.votes
            try:
                votes = [self._as_stored(each, chain) for each in await self._engine.critiques(chain)]
            finally:
                self._running -= self.votes
        if wrong := wrong_critiques(votes, chain, self.votes):
            raise EngineDied(f"the judge gave a wrong answer: {wrong}")
        self._written += len(votes)
        self._tokens += sum(each.n_tokens for each in votes)
        self._read += sum(each.n_prompt_tokens for each in votes)
        return votes

    def _as_stored(self, critique: Critique, chain: ChainText) -> Critique:
        turns = tuple(map(storable, critique.turns))
        return replace(
            critique, turns=turns, reading=read_critique(self._judge, turns, critique.finish, len(chain.steps))
        )
