"""The searches of a unit: what they ask goes to the engines, and each answer to the log and to its search.

The log counts. Where it has an answer to a question, no engine is asked; where another worker has extended it, the searches
take the path that it says.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.core.ids import content_id
from pipeline.core.records import ChainText, Finish, Problem
from pipeline.core.tables import storable
from pipeline.graders.base import MAX_ANSWER_KEPT
from pipeline.runtime.chain_run.worker import Completed, New
from pipeline.runtime.searching.written import Written
from pipeline.searches.base import Ask, Node, Sample, Score, path_of
from pipeline.searches.log import (
    SampleAnswer,
    ScoreAnswer,
    sample_answers,
    samples_table,
    score_answers,
    step_scores_table,
)
from pipeline.searches.problem import ProblemSearch, SearchProblem
from pipeline.searches.results import part_totals, search_totals, tables_of
from pipeline.storage.stored_search import CANDIDATES, SAMPLES, SEARCHES, STEP_SCORES
from pipeline.storage.unit_log import UnitLog

if TYPE_CHECKING:
    from pipeline.runtime.searching.worker import Searching

_Answers = tuple[dict[str, SampleAnswer], dict[str, ScoreAnswer]]
"""Answers to a search: of the policy by sample, of the scorer by prefix."""


class _Running:
    """A search that goes on. `over` is set when it ends, or when it begins again."""

    def __init__(self, search: ProblemSearch, work: "Searching") -> None:
        self.search = search
        asked = search.problem
        self.problem = Problem(problem_id=asked.problem_id, text=asked.problem, golds=asked.golds)
        self.root = work.prompter.root(self.problem)
        self._encode = work.engine.tokenizer.encode
        times = [each.seconds for each in search.samples.values()] + [each.seconds for each in search.scores.values()]
        # When it would have begun if it had run without a break.
        loop = asyncio.get_running_loop()
        self.began = loop.time() - max(times, default=0.0)
        self.over: asyncio.Future[None] = loop.create_future()
        self._last: tuple[Node, str, tuple[int, ...], str] | None = None

    def end(self) -> None:
        """Wake who waits for it."""
        if not self.over.done():
            self.over.set_result(None)

    def written(self, ask: Sample, work: "Searching", now: float) -> Written:
        """The sample, of which nothing is written yet."""
        if self._last is None or self._last[0] is not ask.node:  # Samples of a node are asked for together.
            self._last = self._chain(ask.node)
        _, stem, before, last_step = self._last
        # Rows with different chains of one problem are independent.
        chain = self.search.problem.chain_id if self.search.given else ""
        return Written(
            ask=ask,
            asked=content_id("request", ask.key, chain) if chain else ask.key,
            problem=self.problem,
            prompt_ids=self.root.prompt_ids,
            before=before,
            stem=self.root.text + stem,
            last_step=last_step,
            max_tokens=work.config.sampling.max_tokens,
            max_steps=work.config.search.max_steps,
            context=work.engine.max_model_len,
            began=now,
            search_began=self.began,
        )

    def _chain(self, node: Node) -> tuple[Node, str, tuple[int, ...], str]:
        """A node with the text and the tokens up to it, and the text of its last step."""
        path, own = path_of(node), 0
        if self.search.given:
            given = {each.node_id for each in self.search.given}
            own = next((at for at, each in enumerate(path) if each.node_id not in given), len(path))
        texts = [each.text for each in path]
        tokens = self._encode("".join(texts[:own]).rstrip(" \t")) if own else []
        for each in path[own:]:
            tokens += self.search.tokens[each.node_id]
        return node, "".join(texts), tuple(tokens), texts[-1] if texts else ""


class UnitSearches:
    """The searches of a unit, and their answers that are not committed yet: see `Collected`."""

    def __init__(self, work: "Searching", problems: Sequence[SearchProblem]) -> None:
        self.work = work
        self.now = asyncio.get_running_loop().time
        self.searches = {problem.row: ProblemSearch(problem, work.search) for problem in problems}
        self._known: dict[int, _Answers] = {}
        """The answers of the log, by row."""
        self._new: dict[int, _Answers] = {row: ({}, {}) for row in self.searches}
        self._running: dict[int, _Running] = {}
        self._asked: set[tuple[int, str]] = set()
        """Questions that the engines have, by row and key."""

    def read(self, log: UnitLog) -> None:
        self._known = _answers(log, self.searches)
        for row, (samples, scores) in self._known.items():
            search, (new_samples, new_scores) = self.searches[row], self._new[row]
            known = {**new_samples, **samples}, {**new_scores, **scores}
            if known != (search.samples, search.scores):
                search.replay(known[0].values(), known[1].values())
                if (before := self._running.get(row)) is not None:
                    self._begin(row)
                    before.end()
            # The log may have an answer that is equal to a new one. What followed from an answer that the log has otherwise is
            # not asked for any more.
            self._new[row] = (
                {key: each for key, each in new_samples.items() if key in search.samples and key not in samples},
                {key: each for key, each in new_scores.items() if key in search.scores and key not in scores},
            )

    def missing(self) -> dict[int, ChainText]:
        return {row: _chain_text(search.problem) for row, search in self.searches.items() if search.found is None}

    def take(self, results: Mapping[int, SampleAnswer | None]) -> None:
        for row, answer in results.items():
            if answer is not None:
                self.searches[row].fail(answer)
                self._new[row][0][answer.sample_id] = answer

    def new(self) -> New | None:
        samples = [(row, each) for row, (answers, _) in self._new.items() for each in answers.values()]
        scores = [(row, each) for row, (_, answers) in self._new.items() for each in answers.values()]
        if not samples and not scores:
            return None
        tables = {SAMPLES: samples_table(samples), STEP_SCORES: step_scores_table(scores)}
        totals = part_totals([tables[SAMPLES]], [tables[STEP_SCORES]])
        return New(tables=tables, totals=totals, rows=(samples, scores))

    def committed(self, new: New) -> None:
        samples, scores = new.rows
        for row, answer in samples:
            self._new[row][0].pop(answer.sample_id, None)
            self._known[row][0][answer.sample_id] = answer
        for row, score in scores:
            self._new[row][1].pop(score.prefix_id, None)
            self._known[row][1][score.prefix_id] = score

    def completed(self, log: UnitLog, last: New | None) -> Completed:
        # Answers that follow a lost one, which is another text now.
        for at, name in enumerate((SAMPLES, STEP_SCORES)):
            asked = {row: (search.samples, search.scores)[at] for row, search in self.searches.items()}
            unasked = {(row, key) for row, known in self._known.items() for key in known[at] if key not in asked[row]}
            log.leave_out(name, unasked)
        found = tables_of(list(self.searches.values()), self.work.search.settings, self.work.scorer_model)
        tables = {CANDIDATES: found.candidates, SEARCHES: found.searches}
        return Completed(totals=search_totals(found.searches), tables=tables)

    async def results(self, chains: Mapping[int, ChainText]) -> AsyncGenerator[Mapping[int, SampleAnswer | None], None]:
        try:
            for row in chains:
                self._begin(row)
            for row in chains:
                while self.searches[row].found is None:
                    await self.work.until(self._running[row].over)
                yield {row: None}
        finally:
            for row in chains:
                self._running.pop(row, None)

    def _begin(self, row: int) -> None:
        """Ask what a search has open."""
        search = self.searches[row]
        self._running[row] = _Running(search, self.work)
        if search.found is None and not search.open:
            search.begin()
        self._go_on(row, list(search.open.values()))

    def _go_on(self, row: int, asks: Sequence[Ask]) -> None:
        """Ask the log, or the engines."""
        running = self._running[row]
        search = running.search
        for ask in search.answered(asks, *self._known.get(row, ({}, {}))):
            if (row, ask.key) not in self._asked:
                self._asked.add((row, ask.key))
                if isinstance(ask, Sample):
                    self.work.begin_soon(self._sample(row, running.written(ask, self.work, self.now())))
                else:
                    self.work.begin_soon(self._score(row, ask, running.problem))
        if search.found is not None and not running.over.done():
            self.work.ended += 1
            running.end()

    def _waiting(self, row: int, key: str) -> Any:
        """The question of a search that still waits for its answer; None if it does not."""
        running = self._running.get(row)
        return None if running is None else running.search.open.get(key)

    async def _sample(self, row: int, written: Written) -> None:
        """Have the policy write a sample, and go on with it, if its search still waits for it."""
        work, key, answer = self.work, written.ask.key, None
        while answer is None:
            if written.left <= 0:
                answer = written.no_place(self.now())
                break
            completion = await work.samples.ask(written.next_request(work.cutter))
            work.tokens += completion.n_tokens
            if self._waiting(row, key) is None:
                break
            answer = written.take(completion, work.cutter, work.engine.tokenizer, work.ending, self.now())
        if answer is not None:
            answer = await self._graded(written, answer)
        self._asked.discard((row, key))
        if answer is not None and (ask := self._waiting(row, key)) is not None:
            self._new[row][0][key] = answer
            self._go_on(row, self.searches[row].take_sample(ask, answer))

    async def _graded(self, written: Written, answer: SampleAnswer) -> SampleAnswer:
        """With the final answer of an ended chain, and its verdict where the right answer is known."""
        if not answer.ended or answer.finish in (Finish.ENGINE_FAILED, Finish.ABORT):
            return answer
        work, problem, stem = self.work, written.problem, written.stem
        stated: str | None
        if problem.golds:
            completion = written.completion(answer)
            grade = work.judge.at_once(problem, completion, stem)
            if grade is None:
                await work.judge.wait_for_capacity()
                grade = await work.judge.in_time(problem, completion, stem)
                answer = answer._replace(seconds=self.now() - written.search_began)
            answer = answer._replace(verdict=grade.verdict)
            stated = grade.answer
        else:
            stated = work.checker.final_answer(stem + answer.text, complete=answer.finish is Finish.STOP)
        return answer._replace(answer=storable(stated[:MAX_ANSWER_KEPT]) if stated else None)

    async def _score(self, row: int, asked: Score, problem: Problem) -> None:
        """Have a chain scored, and go on with its scores, if its search still waits for them."""
        work, path, began = self.work, path_of(asked.node), self.now()
        assert work.scores is not None, "the method asks for scores"
        found = await work.scores.ask(
            ChainText(
                chain_id=asked.node.prefix_id,
                problem_id=problem.problem_id,
                problem=problem.text,
                steps=tuple(node.text.strip() for node in path),
                prefix_ids=tuple(node.prefix_id for node in path),
            )
        )
        self._asked.discard((row, asked.key))
        if (ask := self._waiting(row, asked.key)) is None:
            return
        running, now = self._running[row], self.now()
        wanted = {node.prefix_id for node in running.search.to_score(ask)}
        answers = []
        for step, node in enumerate(path, start=1):
            if node.prefix_id not in wanted:
                continue
            raw, last = found.scores[step - 1], step == len(path)
            answers.append(
                ScoreAnswer(
                    prefix_id=node.prefix_id,
                    step=step,
                    score=work.calibrated(step, raw),
                    raw_score=raw,
                    reliability=None if found.reliability is None else found.reliability[step - 1],
                    fault=(found.fault or None) if raw is None else None,
                    n_tokens=found.n_tokens if last else 0,
                    n_computed=found.n_computed if last else 0,
                    seconds=now - running.began,
                    took=now - began,
                )
            )
        self._new[row][1].update((each.prefix_id, each) for each in answers)
        self._go_on(row, running.search.take_scores(ask, answers))


def _answers(log: UnitLog, rows: Mapping[int, object]) -> dict[int, _Answers]:
    """The answers that a log has, by row."""
    known: dict[int, _Answers] = {row: ({}, {}) for row in rows}
    for table in log.rows(SAMPLES):
        for row, answer in sample_answers(table):
            known[row][0][answer.sample_id] = answer
    for table in log.rows(STEP_SCORES):
        for row, score in score_answers(table):
            known[row][1][score.prefix_id] = score
    return known


def _chain_text(problem: SearchProblem) -> ChainText:
    return ChainText(
        chain_id=problem.chain_id,
        problem_id=problem.problem_id,
        problem=problem.problem,
        steps=problem.steps,
        prefix_ids=(),
        golds=problem.golds,
    )
