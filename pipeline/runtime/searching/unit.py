"""The searches of a unit: what they ask goes to the engines, and each answer to the log and to its search."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.core.errors import EngineDied
from pipeline.core.records import ChainText, Completion, Finish, Grade, Problem
from pipeline.core.tables import storable
from pipeline.graders.base import MAX_ANSWER_KEPT
from pipeline.runtime.chain_run.worker import Completed, New
from pipeline.runtime.searching.sampling import Written, chain_tokens
from pipeline.scorers.base import StepScores
from pipeline.searches.base import Ask, Node, Sample, Score, path_of
from pipeline.searches.log import (
    SAMPLES,
    STEP_SCORES,
    SampleAnswer,
    ScoreAnswer,
    sample_answers,
    samples_table,
    score_answers,
    step_scores_table,
)
from pipeline.searches.problem import ProblemSearch, SearchProblem
from pipeline.searches.results import SEARCHES, tables_of
from pipeline.searches.totals import part_totals, search_totals
from pipeline.storage.unit_log import UnitLog

if TYPE_CHECKING:
    from pipeline.runtime.searching.worker import Searching

_Answers = tuple[dict[str, SampleAnswer], dict[str, ScoreAnswer]]
"""Logged answers of a problem: of the policy by sample, of the scorer by prefix."""


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


class UnitSearches:
    """The searches of a unit, and their answers that are not committed yet: see `Collected`."""

    def __init__(self, work: "Searching", problems: Sequence[SearchProblem]) -> None:
        self._work = work
        self.searches = {problem.row: ProblemSearch(problem, work.search) for problem in problems}
        self._new_samples: list[tuple[int, SampleAnswer]] = []
        self._new_scores: list[tuple[int, ScoreAnswer]] = []
        self._read = False
        self._known: dict[int, _Answers] = {row: ({}, {}) for row in self.searches}

    def read(self, log: UnitLog) -> None:
        samples = [pair for table in log.rows(SAMPLES) for pair in sample_answers(table)]
        scores = [pair for table in log.rows(STEP_SCORES) for pair in score_answers(table)]
        known: dict[int, _Answers] = {row: ({}, {}) for row in self.searches}
        for row, answer in samples:
            known[row][0][answer.sample_id] = answer
        for row, score in scores:
            known[row][1][score.prefix_id] = score
        if not self._read:
            for row, search in self.searches.items():
                search.replay(known[row][0].values(), known[row][1].values())
        # Another worker may have extended the log: its answers count, and ours to the same questions are forgotten.
        self._known, self._read = known, True
        self._new_samples = [(row, each) for row, each in self._new_samples if each.sample_id not in known[row][0]]
        self._new_scores = [(row, each) for row, each in self._new_scores if each.prefix_id not in known[row][1]]

    def missing(self) -> dict[int, ChainText]:
        return {row: _chain_text(search.problem) for row, search in self.searches.items() if search.found is None}

    def take(self, results: Mapping[int, SampleAnswer | None]) -> None:
        for row, answer in results.items():
            if answer is not None:
                self.searches[row].fail(answer)
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
        tables = tables_of(list(self.searches.values()), self._work.search.settings, self._work.scorer_model)
        return Completed(totals=search_totals(tables[SEARCHES]), tables=tables)

    async def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, SampleAnswer | None], None]:
        running = {row: self._running(self.searches[row]) for row in chains}
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
