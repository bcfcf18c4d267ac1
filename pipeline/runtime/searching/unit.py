"""The searches of a unit: what they ask goes to the engines, and each answer to the log and to its search.

The log counts. Where it has an answer to a question, no engine is asked; where another worker has extended it, the searches
take the path that it says.
"""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline.core.ids import content_id
from pipeline.core.records import ChainText, Completion, Finish, Problem, UnitTarget, Verdict
from pipeline.core.table import storable
from pipeline.core.tables import SAMPLES, SEARCHES, STEP_SCORES, SampleAnswer, ScoreAnswer
from pipeline.graders.base import MAX_ANSWER_KEPT
from pipeline.runtime.chain_run.worker import LogOfChains
from pipeline.runtime.searching.written import Written
from pipeline.runtime.unit_log import Finished, LogTable
from pipeline.scorers.base import StepScores
from pipeline.searches.base import Ask, Node, Sample, Score, path_of
from pipeline.searches.log import failure
from pipeline.searches.problem import ProblemSearch
from pipeline.searches.results import part_tally, search_tally, tables_of
from pipeline.storage.unit_files import UnitFiles

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
            row=self.search.problem.row,
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
        path = path_of(node)
        own = sum(each in self.search.given for each in path)
        texts = [each.text for each in path]
        tokens = self._encode("".join(texts[:own]).rstrip(" \t")) if own else []
        for each in path[own:]:
            tokens += self.search.tokens[each.node_id]
        return node, "".join(texts), tuple(tokens), texts[-1] if texts else ""


class UnitSearches(LogOfChains):
    """The searches of a unit, and the log of their answers."""

    def __init__(
        self, work: "Searching", problems: Sequence[ChainText], files: UnitFiles, unit_target: UnitTarget
    ) -> None:
        self.work = work
        self.now = asyncio.get_running_loop().time
        self.searches = {problem.row: ProblemSearch(problem, work.search) for problem in problems}
        self._samples = LogTable.whole(SAMPLES)
        self._scores = LogTable.whole(STEP_SCORES)
        super().__init__(
            files,
            unit_target,
            [self._samples, self._scores],
            lambda new: part_tally([new[SAMPLES.name]], [new[STEP_SCORES.name]]),
        )
        self._known: dict[int, _Answers] = {}
        """The answers of the log when it was read, by row."""
        self._running: dict[int, _Running] = {}
        self._asked: set[tuple[int, str]] = set()
        """Questions that the engines have, by row and key."""

    def _take(self, found: Any) -> None:
        self._known = {row: ({}, {}) for row in self.searches}
        for (row, key), sample in self._samples.kept.items():
            self._known[row][0][key] = sample
        for (row, key), score in self._scores.kept.items():
            self._known[row][1][key] = score
        for row, search in self.searches.items():
            samples, scores = self._known[row]
            if (samples, scores) != (search.samples, search.scores):
                search.replay(samples.values(), scores.values())
                if (before := self._running.get(row)) is not None:
                    self._begin(row)
                    before.end()
        # What followed from an answer that the log has otherwise is not asked for any more.
        self._samples.drop(lambda key: key[1] not in self.searches[key[0]].samples)
        self._scores.drop(lambda key: key[1] not in self.searches[key[0]].scores)

    def missing(self) -> dict[int, ChainText]:
        return {row: search.problem for row, search in self.searches.items() if search.found is None}

    def fail(self, row: int, chain: ChainText) -> None:
        answer = failure(chain.problem_id, row)
        self.searches[row].fail(answer)
        self._samples.add(answer)

    def finished(self) -> Finished:
        # Answers that follow a lost one, which is another text now.
        for table, asked in ((self._samples, "samples"), (self._scores, "scores")):
            unasked = {(row, key) for row, key in table.kept if key not in getattr(self.searches[row], asked)}
            self.files.leave_out(table.name, unasked)
        results = tables_of(list(self.searches.values()), self.work.search.settings, self.work.scorer_model)
        return Finished(results=results, tally=search_tally(results[SEARCHES.name]), readings=self.readings)

    async def search(self, rows: Iterable[int]) -> None:
        """Search until these searches have ended. Raises EngineDied."""
        try:
            for row in rows:
                self._begin(row)
            for row in rows:
                while self.searches[row].found is None:
                    await self.work.until(self._running[row].over)
        finally:
            for row in rows:
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
                    self._sample(row, running.written(ask, self.work, self.now()))
                else:
                    self._score(row, ask, running.problem)
        if search.found is not None and not running.over.done():
            self.work.ended += 1
            running.end()

    def _waiting(self, row: int, key: str) -> Any:
        """The question of a search that still waits for its answer; None if it does not."""
        running = self._running.get(row)
        return None if running is None else running.search.open.get(key)

    def _sample(self, row: int, written: Written) -> None:
        """Have the policy go on with a sample."""
        work = self.work
        if written.left > 0:
            work.samples.ask(written.next_request(work.cutter), partial(self._take_completion, row, written))
        else:
            work.begin_soon(self._leave(row, written))

    async def _leave(self, row: int, written: Written) -> None:
        """Go on without a sample that has no place."""
        self._grade(row, written, written.no_place(self.now()))

    def _take_completion(self, row: int, written: Written, completion: Completion) -> None:
        """Go on with what the policy has written, if its search still waits for it."""
        work, key = self.work, written.ask.key
        work.tokens += completion.n_tokens
        if self._waiting(row, key) is None:
            self._asked.discard((row, key))
            return
        answer = written.take(completion, work.cutter, work.engine.tokenizer, work.ending, self.now())
        if answer is None:
            self._sample(row, written)
        else:
            self._grade(row, written, answer)

    def _grade(self, row: int, written: Written, answer: SampleAnswer) -> None:
        """Go on with a sample: with the final answer of an ended chain, and its verdict where the right answer is known."""
        work, problem = self.work, written.problem
        if not answer.ended or answer.finish in (Finish.ENGINE_FAILED, Finish.ABORT):
            self._take_sample(row, answer)
        elif not problem.golds:
            stated = work.checker.final_answer(written.stem + answer.text, complete=answer.finish is Finish.STOP)
            self._take_sample(row, _stating(answer, stated))
        elif (grade := work.judge.at_once(problem, written.completion(answer), written.stem)) is not None:
            self._take_sample(row, _stating(answer, grade.answer, grade.verdict))
        else:
            work.begin_soon(self._grade_slowly(row, written, answer))

    async def _grade_slowly(self, row: int, written: Written, answer: SampleAnswer) -> None:
        await self.work.judge.wait_for_capacity()
        grade = await self.work.judge.in_time(written.problem, written.completion(answer), written.stem)
        answer = answer._replace(seconds=self.now() - written.search_began)
        self._take_sample(row, _stating(answer, grade.answer, grade.verdict))

    def _take_sample(self, row: int, answer: SampleAnswer) -> None:
        """Go on with a sample, if its search still waits for it."""
        self._asked.discard((row, answer.sample_id))
        if (ask := self._waiting(row, answer.sample_id)) is not None:
            self._samples.add(answer)
            self._go_on(row, self.searches[row].take_sample(ask, answer))

    def _score(self, row: int, ask: Score, problem: Problem) -> None:
        """Have a chain scored."""
        path = path_of(ask.node)
        chain = ChainText(
            chain_id=ask.node.prefix_id,
            problem_id=problem.problem_id,
            problem=problem.text,
            steps=tuple(node.text.strip() for node in path),
            prefix_ids=tuple(node.prefix_id for node in path),
        )
        assert self.work.scores is not None, "the method asks for scores"
        self.work.scores.ask(chain, partial(self._take_scores, row, ask.key, path, self.now()))

    def _take_scores(self, row: int, key: str, path: Sequence[Node], began: float, found: StepScores) -> None:
        """Go on with the scores of a chain, if its search still waits for them."""
        self._asked.discard((row, key))
        if (ask := self._waiting(row, key)) is None:
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
                    row=row,
                    prefix_id=node.prefix_id,
                    step=step,
                    score=self.work.calibrated(step, raw),
                    raw_score=raw,
                    reliability=None if found.reliability is None else found.reliability[step - 1],
                    fault=(found.fault or None) if raw is None else None,
                    n_tokens=found.n_tokens if last else 0,
                    n_computed=found.n_computed if last else 0,
                    seconds=now - running.began,
                    took=now - began,
                )
            )
        for each in answers:
            self._scores.add(each)
        self._go_on(row, running.search.take_scores(ask, answers))


def _stating(answer: SampleAnswer, stated: str | None, verdict: Verdict | None = None) -> SampleAnswer:
    """With the final answer that an ended chain states, and its verdict."""
    return answer._replace(answer=storable(stated[:MAX_ANSWER_KEPT]) if stated else None, verdict=verdict)
