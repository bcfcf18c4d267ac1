"""What a worker of `search` does: it runs the searches of all problems of its units side by side, and logs every answer.

No search waits for another one. Its next questions are asked as soon as their answers decide them.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pipeline.config.search import SearchRunConfig
from pipeline.core.errors import EngineDied
from pipeline.core.progress import Load
from pipeline.core.records import ChainText, Completion, Finish, Grade, Problem
from pipeline.core.tables import storable
from pipeline.data.prompts import Prompter
from pipeline.engines.base import Engine, Surroundings
from pipeline.engines.registry import open_engine, policy_for
from pipeline.graders.base import MAX_ANSWER_KEPT, Ending
from pipeline.graders.registry import checker_for
from pipeline.runtime.answer_ending import ending_for
from pipeline.runtime.async_grader import AsyncGrader
from pipeline.runtime.chain_run.worker import ChainWork, ChainWorker, Completed, Gathered, New
from pipeline.runtime.sampling import Backpressure
from pipeline.runtime.searching.pieces import StepCutter
from pipeline.runtime.searching.problems import search_problems
from pipeline.runtime.searching.sampling import Limits, Sampler, Written, chain_tokens
from pipeline.runtime.searching.scoring import ScoreQueue
from pipeline.runtime.searching.totals import part_totals, search_totals
from pipeline.runtime.worker import Snapshot
from pipeline.scorers.base import ScoringEngine, StepScores
from pipeline.scorers.calibration import Calibration
from pipeline.scorers.calibration_file import read_calibration, refuse_other_model
from pipeline.scorers.registry import open_scorer, scorer_for
from pipeline.searches.base import Ask, Node, Sample, Score, Search, path_of
from pipeline.searches.log import (
    SAMPLES,
    STEP_SCORES,
    SampleAnswer,
    ScoreAnswer,
    failure,
    sample_answers,
    samples_table,
    score_answers,
    step_scores_table,
)
from pipeline.searches.problem import ProblemSearch, SearchProblem
from pipeline.searches.registry import search_for
from pipeline.searches.results import SEARCHES, tables_of
from pipeline.storage.location import storage_at
from pipeline.storage.unit_log import UnitLog

NO_SCORER = "none"
"""The identity of the scorer of a search that asks for no scores."""


class Searching(ChainWork[SampleAnswer | None]):
    """See the module. A result is None for a search that has ended, and `log.failure` for a problem that kills engines.

    `scoring`: None for a method that asks for no scores.
    """

    counts_requests = True

    def __init__(self, config: SearchRunConfig, search: Search, engine: Engine, scoring: ScoringEngine | None) -> None:
        self.config = config
        self.search = search
        self.engine = engine
        self.scoring = scoring
        self.calibration: Calibration | None = (
            None if config.calibration is None else read_calibration(config.calibration)
        )
        self.cutter = StepCutter(config.data)
        self.ending: Ending | None = ending_for(config)
        self.checker = checker_for(config.grader)
        self.judge = AsyncGrader(self.checker, config.grader.processes)
        self.sampler = Sampler(engine, self._count, self._die)
        self.scores = None if scoring is None else ScoreQueue(scoring, self._count, self._die)
        self._pressure: Backpressure | None = None
        self._counted = 0
        self._died: asyncio.Future[None] | None = None
        self._later: set[asyncio.Task[None]] = set()
        self.ended = self.tokens = 0

    @property
    def model(self) -> str:
        return f"{self.engine.policy} and {self.scorer_model}"

    @property
    def scorer_model(self) -> str:
        """Identity of the scorer. Known after `start`."""
        return NO_SCORER if self.scoring is None else self.scoring.model

    @property
    def capacity(self) -> int:
        return self.engine.capacity

    async def fetch(self) -> None:
        await policy_for(self.config.policy).fetch()
        if self.scoring is not None:
            await scorer_for(self.config.scorer).fetch()

    async def start(self) -> None:
        # One after the other: each looks at how much memory of the device is left.
        await self.engine.start()
        if self.scoring is not None:
            await self.scoring.start()
            if self.calibration is not None and not self.config.other_model:
                refuse_other_model(self.calibration, self.scoring.model, f"calibration={self.config.calibration}")
        config = self.config
        self.prompter = Prompter(
            tokenizer=self.engine.tokenizer,
            config=config.policy.prompt,
            max_tokens=config.sampling.max_tokens,
            max_model_len=self.engine.max_model_len,
        )
        self.limits = Limits(
            max_tokens=config.sampling.max_tokens,
            max_steps=config.search.max_steps,
            context=self.engine.max_model_len,
        )

    def begin(self, pressure: Backpressure) -> None:
        self._pressure = pressure

    def gather(self, chains: pa.Table) -> Gathered[SampleAnswer | None]:
        return _Searches(self, search_problems(chains, self.config.data.separator))

    async def until(self, done: "asyncio.Future[Any]") -> None:
        """Wait for `done`. Raises EngineDied when an engine stops working before."""
        if self._died is None or self._died.done():
            self._died = asyncio.get_running_loop().create_future()
        died = self._died
        await asyncio.wait([done, died], return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            died.result()

    def failed(self, chain: ChainText) -> SampleAnswer | None:
        return failure(chain.problem_id)

    def snapshot(self) -> Snapshot:
        waiting = 0 if self.scores is None else self.scores.open
        load = self.engine.load
        return Snapshot(
            rollouts=self.ended,
            tokens=self.tokens,
            grading_seconds=self.judge.seconds,
            work=self.engine.work,
            load=Load(running=load.running, waiting=load.waiting, grading=waiting + self.judge.waiting),
            hardware=self.engine.hardware,
        )

    async def close(self) -> None:
        self.sampler.close()
        if self.scores is not None:
            self.scores.close()
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
        if self._pressure is None:
            return
        scores = self.scores
        late = 0 if scores is None else max(0, scores.open - scores.capacity)
        now = self.sampler.open + late
        if now > self._counted:
            self._pressure.ask(now - self._counted)
        elif now < self._counted:
            self._pressure.answer(self._counted - now)
        self._counted = now

    def do_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that a search waits for."""
        task = asyncio.create_task(work)
        self._later.add(task)
        task.add_done_callback(self._did)

    def _did(self, task: "asyncio.Task[None]") -> None:
        self._later.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._die(error)

    def _die(self, error: BaseException) -> None:
        if self._died is not None and not self._died.done():
            self._died.set_exception(error)
            self._died.exception()  # asyncio prints the errors of futures that nobody waits for


class _Running:
    """A search with what its requests need: `given_tokens` of the chain that the input has, and `began`, when it would have
    begun if it had run without a break. `ended` is set at its end."""

    def __init__(
        self, search: ProblemSearch, prompt_ids: tuple[int, ...], given: Mapping[str, tuple[int, ...]]
    ) -> None:
        self.search = search
        problem = search.problem
        self.row = problem.row
        self.problem = Problem(problem_id=problem.problem_id, text=problem.problem, golds=problem.golds)
        self.prompt_ids = prompt_ids
        self.given_tokens = given
        times = [each.seconds for each in search.samples.values()] + [each.seconds for each in search.scores.values()]
        self.began = _now() - max(times, default=0.0)
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class _Searches:
    """The searches of a unit, and their answers that are not committed yet: see `Gathered`."""

    def __init__(self, work: Searching, problems: Sequence[SearchProblem]) -> None:
        self._work = work
        self._searches = {problem.row: ProblemSearch(problem, work.search) for problem in problems}
        self._new_samples: list[tuple[int, SampleAnswer]] = []
        self._new_scores: list[tuple[int, ScoreAnswer]] = []
        self._read = False
        self._known: dict[int, tuple[dict[str, SampleAnswer], dict[str, ScoreAnswer]]] = {}

    def read(self, log: UnitLog) -> None:
        samples = [pair for table in log.rows(SAMPLES) for pair in sample_answers(table)]
        scores = [pair for table in log.rows(STEP_SCORES) for pair in score_answers(table)]
        known: dict[int, tuple[dict[str, SampleAnswer], dict[str, ScoreAnswer]]] = {
            row: ({}, {}) for row in self._searches
        }
        for row, answer in samples:
            known[row][0][answer.sample_id] = answer
        for row, score in scores:
            known[row][1][score.prefix_id] = score
        if not self._read:
            for row, search in self._searches.items():
                search.replay(known[row][0].values(), known[row][1].values())
        # Another worker may have extended the log: its answers count, and ours to the same questions are forgotten.
        self._known, self._read = known, True
        self._new_samples = [(row, each) for row, each in self._new_samples if each.sample_id not in known[row][0]]
        self._new_scores = [(row, each) for row, each in self._new_scores if each.prefix_id not in known[row][1]]

    def missing(self) -> dict[int, ChainText]:
        return {row: _chain_text(search.problem) for row, search in self._searches.items() if search.found is None}

    def take(self, results: Mapping[int, SampleAnswer | None]) -> None:
        for row, answer in results.items():
            if answer is not None:
                self._searches[row].fail(answer)
                self._new_samples.append((row, answer))

    def new(self) -> New | None:
        if not self._new_samples and not self._new_scores:
            return None
        samples, scores = list(self._new_samples), list(self._new_scores)
        return New(
            tables={SAMPLES: samples_table(samples), STEP_SCORES: step_scores_table(scores)},
            totals=part_totals(samples, scores),
            rows=({each.sample_id for _, each in samples}, {(row, each.prefix_id) for row, each in scores}),
        )

    def committed(self, new: New) -> None:
        samples, scores = new.rows
        self._new_samples = [pair for pair in self._new_samples if pair[1].sample_id not in samples]
        self._new_scores = [pair for pair in self._new_scores if (pair[0], pair[1].prefix_id) not in scores]

    def completed(self, log: UnitLog, last: New | None) -> Completed:
        tables = tables_of(list(self._searches.values()), self._work.search.settings, self._work.scorer_model)
        return Completed(totals=search_totals(tables[SEARCHES]), tables=tables)

    async def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, SampleAnswer | None], None]:
        running = {row: self._running(self._searches[row]) for row in chains}
        try:
            for each in running.values():
                self._ask(each, list(each.search.open.values()))
                self._note_end(each)
            for row, each in running.items():
                await self._work.until(each.ended)
                yield {row: None}
        finally:
            for each in running.values():
                each.ended.cancel()

    def _running(self, search: ProblemSearch) -> _Running:
        """A search that goes on from its log."""
        work, problem = self._work, search.problem
        if not search.open:
            search.begin()
        root = work.prompter.root(Problem(problem_id=problem.problem_id, text=problem.problem, golds=problem.golds))
        encode = work.engine.tokenizer.encode
        given = {
            node.node_id: tuple(encode("".join(problem.steps[: index + 1]).rstrip()))
            for index, node in enumerate(search.given)
        }
        return _Running(search, root.prompt_ids, given)

    def _ask(self, running: _Running, asks: Sequence[Ask]) -> None:
        """Ask the engines, or the log."""
        search, due = running.search, list(asks)
        samples, scores = self._known[running.row]
        while due:
            ask = due.pop()
            if isinstance(ask, Sample):
                if ask.key in samples:
                    due += search.take_sample(ask, samples[ask.key])
                else:
                    self._sample(running, ask)
                continue
            nodes = search.to_score(ask)
            if all(node.prefix_id in scores for node in nodes):
                due += search.take_scores(ask, [scores[node.prefix_id] for node in nodes])
            else:
                self._score(running, ask, nodes)

    def _note_end(self, running: _Running) -> None:
        if running.search.found is not None and not running.ended.done():
            self._work.ended += 1
            running.ended.set_result(None)

    def _sample(self, running: _Running, ask: Sample) -> None:
        work = self._work
        path = path_of(ask.node)
        written = Written(
            ask=ask,
            problem=running.problem,
            prompt_ids=running.prompt_ids,
            before=chain_tokens(ask.node, running.search.tokens, running.given_tokens),
            stem="".join(node.text for node in path),
            limits=work.limits,
            began=_now(),
        )

        def take(completion: Completion) -> None:
            if running.ended.done():
                return
            work.tokens += completion.n_tokens
            answer = written.take(completion, work.cutter, work.engine.tokenizer.decode, work.ending, _now())
            if answer is None and written.left > 0:
                work.sampler.ask(written.request(work.cutter), take)
            else:
                self._grade(running, written, answer or written.no_place(_now()))

        if written.left > 0:
            work.sampler.ask(written.request(work.cutter), take)
        else:
            asyncio.get_running_loop().call_soon(self._grade, running, written, written.no_place(_now()))

    def _grade(self, running: _Running, written: Written, answer: SampleAnswer) -> None:
        """Find the final answer of an ended chain, and its verdict where the right answer is known."""
        work, ask = self._work, written.ask
        if not answer.ended or answer.finish in (Finish.ENGINE_FAILED, Finish.ABORT):
            self._sampled(running, ask, answer)
            return
        stem = written.stem
        if not running.problem.golds:
            complete = answer.finish is Finish.STOP
            stated = work.checker.final_answer(stem + answer.text, complete=complete)
            self._sampled(running, ask, _answered(answer, stated, None))
            return
        completion = Completion(
            request=written.request(work.cutter), text=answer.text, finish=answer.finish, n_tokens=answer.n_tokens
        )
        grade = work.judge.at_once(running.problem, completion, stem)
        if grade is not None:
            self._sampled(running, ask, _answered(answer, grade.answer, grade))
            return

        async def later() -> None:
            await work.judge.wait_for_capacity()
            grade = await work.judge.in_time(running.problem, completion, stem)
            if not running.ended.done():
                self._sampled(running, ask, _answered(answer, grade.answer, grade))

        work.do_later(later())

    def _sampled(self, running: _Running, ask: Sample, answer: SampleAnswer) -> None:
        answer = replace(answer, seconds=_now() - running.began)
        self._new_samples.append((running.row, answer))
        self._ask(running, running.search.take_sample(ask, answer))
        self._note_end(running)

    def _score(self, running: _Running, ask: Score, nodes: Sequence[Node]) -> None:
        queue = self._work.scores
        if queue is None:
            raise EngineDied("the search asks for scores, although it says that it needs none")
        path = path_of(ask.node)
        chain = ChainText(
            chain_id=ask.node.prefix_id,
            problem_id=running.problem.problem_id,
            problem=running.problem.text,
            steps=tuple(node.text.strip() for node in path),
            prefix_ids=tuple(node.prefix_id for node in path),
        )
        began = _now()

        def take(found: StepScores) -> None:
            if not running.ended.done():
                self._scored(running, ask, path, nodes, found, began)

        queue.ask(chain, take)

    def _scored(
        self,
        running: _Running,
        ask: Score,
        path: Sequence[Node],
        nodes: Sequence[Node],
        found: StepScores,
        began: float,
    ) -> None:
        now = _now()
        wanted = {node.prefix_id for node in nodes}
        answers = []
        for step, node in enumerate(path, start=1):
            if node.prefix_id not in wanted:
                continue
            raw, last = found.scores[step - 1], step == len(path)
            answers.append(
                ScoreAnswer(
                    prefix_id=node.prefix_id,
                    step=step,
                    score=self._work.calibrated(step, raw),
                    raw_score=raw,
                    reliability=None if found.reliability is None else found.reliability[step - 1],
                    fault=(found.fault or None) if raw is None else None,
                    n_tokens=found.n_tokens if last else 0,
                    n_computed=found.n_computed if last else 0,
                    seconds=now - running.began,
                    took=now - began,
                )
            )
        self._new_scores += [(running.row, each) for each in answers if each.prefix_id not in running.search.scores]
        self._ask(running, running.search.take_scores(ask, answers))
        self._note_end(running)


def _answered(answer: SampleAnswer, stated: str | None, grade: Grade | None) -> SampleAnswer:
    text = storable(stated[:MAX_ANSWER_KEPT]) if stated else None
    return replace(answer, answer=text, verdict=None if grade is None else grade.verdict)


def _chain_text(problem: SearchProblem) -> ChainText:
    return ChainText(
        chain_id=problem.chain_id,
        problem_id=problem.problem_id,
        problem=problem.problem,
        steps=problem.steps,
        prefix_ids=(),
        golds=problem.golds,
    )


def _now() -> float:
    return asyncio.get_running_loop().time()


def searching_work(config: SearchRunConfig, around: Surroundings) -> Searching:
    """The work of the settings, its engines not started. Raises UsageError for what is not installed."""
    search = search_for(config.search)
    engine = open_engine(config.policy, config.sampling, ending_for(config), around)
    scoring = open_scorer(config.scorer, around, newest_only=search.newest_only) if search.scores else None
    return Searching(config, search, engine, scoring)


def searching_worker(config: SearchRunConfig, around: Surroundings) -> ChainWorker[SampleAnswer | None]:
    """A worker of `search` in its own process."""
    return ChainWorker(searching_work(config, around), storage_at(config.run_dir), config.run.flush_seconds)
