"""What a worker of `search` does: it runs the searches of all problems of its units side by side, and logs every answer.

No search waits for another one. Its next questions are asked as soon as their answers decide them.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any

from pipeline.config.search import SearchRunConfig
from pipeline.core.records import ChainText
from pipeline.data.prompts import Prompter
from pipeline.engines.base import Engine, Surroundings
from pipeline.engines.registry import open_engine, policy_for
from pipeline.graders.base import Ending
from pipeline.graders.registry import checker_for
from pipeline.runtime.answer_ending import ending_for
from pipeline.runtime.async_grader import AsyncGrader
from pipeline.runtime.chain_run.worker import EachChain
from pipeline.runtime.scoring.task import calibration_of, refuse_other
from pipeline.runtime.searching.asking import policy_questions, scorer_questions
from pipeline.runtime.searching.pieces import StepCutter
from pipeline.runtime.searching.unit import UnitSearches
from pipeline.runtime.worker import Snapshot, UnitTask
from pipeline.scorers.base import ScoringEngine
from pipeline.scorers.registry import open_scorer, scorer_for
from pipeline.searches.base import Search
from pipeline.searches.problem import search_problems
from pipeline.searches.registry import search_for
from pipeline.storage.storage import Storage
from pipeline.storage.unit_files import UnitFiles
from pipeline.storage.units import unit_chains

NO_SCORER = "none"
"""The identity of the scorer of a search that asks for no scores."""


class Searching(EachChain[UnitSearches]):
    """See the module. `scoring`: None for a method that asks for no scores."""

    def __init__(self, config: SearchRunConfig, search: Search, engine: Engine, scoring: ScoringEngine | None) -> None:
        self.config = config
        self.search = search
        self.engine = engine
        self.scoring = scoring
        self.calibration = calibration_of(config)
        self.cutter = StepCutter(config.data)
        self.ending: Ending | None = ending_for(config)
        self.checker = checker_for(config.grader)
        self.judge = AsyncGrader(self.checker, config.grader.processes)
        self.samples = policy_questions(engine, self.begin_soon, self._count)
        self.scores = None if scoring is None else scorer_questions(scoring, self.begin_soon, self._count)
        self._counted = 0
        self._error: BaseException | None = None
        self._awaited: set[asyncio.Future[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended = self.tokens = 0

    @property
    def scorer_model(self) -> str:
        """Identity of the scorer. Known after `start`."""
        return NO_SCORER if self.scoring is None else self.scoring.model

    async def fetch(self) -> None:
        await policy_for(self.config.policy).fetch()
        if self.scoring is not None:
            await scorer_for(self.config.scorer).fetch()

    async def load(self) -> tuple[str, int]:
        # One after the other: each looks at how much memory of the device is left.
        await self.engine.start()
        if self.scoring is not None:
            await self.scoring.start()
            refuse_other(self.config, self.calibration, self.scoring.model)
        config = self.config
        self.prompter = Prompter(
            tokenizer=self.engine.tokenizer,
            config=config.policy.prompt,
            max_tokens=config.sampling.max_tokens,
            max_model_len=self.engine.max_model_len,
        )
        return f"{self.engine.policy} and {self.scorer_model}", self.engine.capacity

    async def open(self, storage: Storage, task: UnitTask, files: UnitFiles) -> UnitSearches:
        chains = await asyncio.to_thread(unit_chains, storage, task.unit)
        return UnitSearches(self, search_problems(chains, self.config.data.separator), files, task.unit_target)

    async def add_results(self, log: UnitSearches, chains: Mapping[int, ChainText]) -> None:
        self.backpressure.ready(log.unit_id)
        await log.search(chains)

    async def until(self, done: "asyncio.Future[None]") -> None:
        """Wait for `done`. Raises EngineDied when an engine stops working, or what a plug-in raises. A worker goes on after
        neither."""
        if self._error is not None:
            raise self._error
        self._awaited.add(done)
        try:
            await done
        finally:
            self._awaited.discard(done)

    def counted(self) -> Snapshot:
        scoring = 0 if self.scores is None else self.scores.open
        return Snapshot(
            rollouts=self.ended,
            tokens=self.tokens,
            grading_seconds=self.judge.seconds,
            work=self.engine.work,
            load=replace(self.engine.load, grading=self.judge.waiting, scoring=scoring),
            hardware=self.engine.hardware,
        )

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self.judge.close()
        self.checker.close()
        await self.engine.close()
        if self.scoring is not None:
            await self.scoring.close()

    def calibrated(self, step: int, score: float | None) -> float | None:
        """The score of step `step`, counted from 1."""
        if self.calibration is None:
            return score
        return self.calibration.apply([*[None] * (step - 1), score])[-1]

    def _count(self) -> None:
        """Tell how many requests there are. Chains that wait for a slow scorer count too: more problems would only wait with
        them."""
        now = self.samples.open + (0 if self.scores is None else self.scores.late)
        if now > self._counted:
            self.backpressure.ask(now - self._counted)
        elif now < self._counted:
            self.backpressure.answer(self._counted - now)
        self._counted = now

    def begin_soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that searches wait for. They end with its error."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None or self._error is not None:
            return
        self._error = error
        for each in self._awaited:
            if not each.done():
                each.set_exception(error)


def searching_work(config: SearchRunConfig, around: Surroundings) -> Searching:
    """The work of the settings, its engines not started. Raises UsageError for what is not installed."""
    search = search_for(config.search)
    engine = open_engine(config.policy, config.sampling, ending_for(config), around)
    scoring = open_scorer(config.scorer, around, newest_only=search.newest_only) if search.scores else None
    return Searching(config, search, engine, scoring)
