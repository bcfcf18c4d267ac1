"""Runs of `search` with the tiny policy and PRMs of several seeds, in this process: through the functions of the command, with
a sampler of this process in place of vLLM. A run that is finished is not run again.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from pipeline.cli.compose import compose
from pipeline.cli.search import SEARCH
from pipeline.config.search import SearchRunConfig
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.engines.registry import policy_for
from pipeline.runtime.chain_run.run import run_task
from pipeline.runtime.chain_run.task import Task
from pipeline.runtime.searching.task import SearchTask
from pipeline.runtime.searching.worker import Searching
from pipeline.runtime.worker import Worker
from pipeline.runtime.worker_handle import WorkerHandle, WorkerPool
from pipeline.scorers.base import ScoringEngine, StepScores
from pipeline.scorers.registry import open_scorer
from pipeline.searches.registry import search_for
from pipeline.storage.location import storage_at
from tests.bench.loop.engine import TinyEngine
from tests.runtime.in_process import stop_signal, worker_in_process
from tests.tiny.policy import SHORT, TinyPolicy

TOGETHER = 1000
"""Problems of a unit: all are searched side by side."""
Scores = dict[tuple[str, tuple[str, ...]], StepScores]
"""By the text of the problem and the steps."""


def searched(
    policy: TinyPolicy, scorer: Path, problems: Path, run_dir: Path, method: str, n: int, *settings: str
) -> tuple[str, ...]:
    """The command that solves problems with the policy, steered by a reward model of `train`."""
    where = (f"scorer.model={scorer}", f"data.path={problems}", f"run_dir={run_dir}")
    return ("search", f"search={method}", f"search.n={n}", *policy.overrides, *where, *settings)


class Remembering:
    """A scoring engine that computes no chain again whose scores are `known`. It counts its tokens as if it did."""

    def __init__(self, engine: ScoringEngine, known: Scores) -> None:
        self._engine = engine
        self._known = known

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        new = {
            (chain.problem, chain.steps): chain for chain in chains if (chain.problem, chain.steps) not in self._known
        }
        if new:
            self._known |= zip(new, await self._engine.score(list(new.values())), strict=True)
        return [self._known[chain.problem, chain.steps] for chain in chains]


class Searches:
    """Searches of some problems with one PRM. `seed` decides what the policy samples: searches with the same seed that ask the
    same get the same answer."""

    def __init__(self, folder: Path, scorer: Path, problems: Path, seed: int) -> None:
        self._folder = folder
        self._scorer = scorer
        self._problems = problems
        config = self.config("majority", 1)
        facts = asyncio.run(policy_for(config.policy).facts(config.sampling))
        self._engine = TinyEngine(facts.tokenizer, seed, facts.policy)
        self._scores: dict[bool, Scores] = {False: {}, True: {}}

    def config(self, method: str, n: int, *settings: str) -> SearchRunConfig:
        run_dir, chosen = self.run_dir(method, n), ("scorer.engine=transformers", *settings)
        command = searched(SHORT, self._scorer, self._problems, run_dir, method, n, *chosen)
        config = compose(SEARCH, command[1:]).settings()
        assert isinstance(config, SearchRunConfig)
        return config

    def run_dir(self, method: str, n: int) -> Path:
        return self._folder / f"{method}-{n}"

    def run(self, method: str, n: int, *settings: str) -> Path:
        config = self.config(method, n, f"run.unit_problems={TOGETHER}", *settings)
        with stop_signal() as stop:
            run_task(SearchTask(config), self._hired, lambda _: None, stop)
        return self.run_dir(method, n)

    @contextmanager
    def _hired(self, task: Task[Any]) -> Iterator[WorkerPool]:
        config = task.spread(1)

        def hire(_attempt: int) -> WorkerHandle:
            search = search_for(config.search)
            scoring = self._scoring(config, search.newest_only) if search.scores else None
            work = Searching(config, search, self._engine, scoring)
            return worker_in_process(Worker(work, storage_at(config.run_dir), config.run.flush_seconds))

        yield WorkerPool(hire=hire, workers=1)

    def _scoring(self, config: SearchRunConfig, newest_only: bool) -> ScoringEngine:
        engine = open_scorer(config.scorer, Surroundings(), newest_only=newest_only)
        return cast(ScoringEngine, Remembering(engine, self._scores[newest_only]))
