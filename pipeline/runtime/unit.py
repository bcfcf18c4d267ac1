"""The work of one unit: chains -> prefixes -> rounds of requests -> completions -> verdicts -> labels.

For each problem, the estimator decides the next round when all rollouts of the previous round have finished. Problems do not
wait for each other. Rollouts in the unit's log are never requested again. Finished rollouts go into the log, which is
committed every `run.flush_seconds`.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.config.label import DataConfig, PromptConfig, SamplingConfig
from pipeline.core.ids import rollout_id
from pipeline.core.progress import Verdicts
from pipeline.core.records import (
    UNGRADED,
    Chain,
    Completion,
    Finish,
    Grade,
    InputRow,
    Reject,
    Request,
    Rollout,
    Totals,
    Trials,
    Verdict,
)
from pipeline.data.grown import with_passed
from pipeline.engines.base import Engine
from pipeline.estimators.base import Estimator
from pipeline.estimators.tree import Tree, trials_of
from pipeline.graders.base import Checker
from pipeline.graders.question import NO_COMPLETION
from pipeline.graders.registry import grader_version
from pipeline.runtime.async_grader import AsyncGrader
from pipeline.runtime.distinct_prompts import DistinctPrompts
from pipeline.runtime.growing import Growth, Promoter
from pipeline.runtime.planner import Planner, SolutionDrawer, UnitPlan, totals_of
from pipeline.runtime.prefix_reuse import PrefixMatcher
from pipeline.runtime.rollout_log import RolloutLog
from pipeline.runtime.rounds import Arrivals, Round, Rounds, grown_rounds
from pipeline.runtime.sampling import Backpressure, failed_completion, sample_batches
from pipeline.runtime.worker import Probe


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """The places where a unit's finished rollouts are recorded, and the steps that they are searched for."""

    log: RolloutLog
    rounds: Rounds
    steps: PrefixMatcher
    arrivals: Arrivals = field(default_factory=Arrivals)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitResult:
    """The result of a unit. `readings`: how often its log had been read when the result was computed.

    `state`: what the estimator has learned, including from this unit; None if the estimator does not learn.
    """

    readings: int
    chains: Sequence[Chain]
    trials: Mapping[str, Trials]
    state: Any
    rejects: Sequence[Reject]
    totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSettings:
    """The settings that the work of a unit needs. `processes`: grading processes."""

    estimator: Estimator
    sampling: SamplingConfig
    prompt: PromptConfig
    data: DataConfig
    processes: int


class UnitLabeller:
    """Labels units with one engine and one grader, several units at a time.

    The `begun` units have requested `planned` rollouts so far. `rollouts` of these have finished, with `tokens` tokens. Of the
    units' `prefixes` that can be sampled, `decided` need no more rollouts. `backpressure` signals when to begin another unit.
    """

    def __init__(self, settings: UnitSettings, engine: Engine, checker: Checker) -> None:
        self._estimator = settings.estimator
        self._store_tokens = settings.sampling.store_tokens
        self._engine = engine
        self._grader = grader_version()
        self.judge = AsyncGrader(checker, settings.processes)
        self.backpressure = Backpressure(engine.capacity)
        self.prompts = DistinctPrompts()
        self._drawer = SolutionDrawer(settings.sampling, settings.data, engine, self.judge)
        self._planner = Planner(settings.prompt, settings.sampling, engine, self.judge, self._drawer)
        self._promoter = Promoter(
            settings.data,
            engine.tokenizer.decode,
            self._planner.fits,
            follows_steps=settings.estimator.follows_steps,
        )
        self.begun = 0
        self.planned = 0
        self.prefixes = 0
        self.decided = 0
        self.rollouts = 0
        self.tokens = 0
        self._truncated = 0
        self._aborted = 0
        self._verdicts: Counter[Verdict] = Counter()

    @property
    def verdicts(self) -> Verdicts:
        """The finished rollouts by verdict."""
        count = self._verdicts
        return Verdicts(
            correct=count[Verdict.CORRECT],
            incorrect=count[Verdict.INCORRECT],
            no_answer=count[Verdict.NO_ANSWER],
            ungraded=sum(count[verdict] for verdict in UNGRADED),
            aborted=self._aborted,
            truncated=self._truncated,
        )

    async def missing_requests(self, log: RolloutLog, growths: Sequence[Growth] = ()) -> list[str]:
        """Ids of the requests to sample next: draws of chains first, and when all of them have finished, rollouts, and those of
        promoted prefixes in the end."""
        plan, fitting = self._begun(log)
        draws = self._planner.missing_draws(plan, fitting, log)
        if draws:
            return [request.request_id for request in draws]
        await self._planner.plan_chains(plan, fitting, log, log.promotions)
        asked = self._rounds(plan, log).next_rounds() or grown_rounds(plan.grown, log)
        if not asked and await self._promote(plan, log, growths):
            return await self.missing_requests(log, growths)
        return [request.request_id for request in _requests(plan, asked)]

    async def label(
        self, log: RolloutLog, probe: Probe | None = None, growths: Sequence[Growth] = ()
    ) -> UnitResult | None:
        """Label all chains of the unit's rows, then those that its `growths` promote. None if the unit needs more rollouts
        after `probe`.

        Raises StoreError, and EngineDied if the engine stops working.
        """
        try:
            return await self._label(log, probe, growths)
        finally:
            self.prompts.end(log.unit_id)

    async def _label(self, log: RolloutLog, probe: Probe | None, growths: Sequence[Growth]) -> UnitResult | None:
        plan, fitting = self._begun(log)
        await self._draw(self._planner.missing_draws(plan, fitting, log), fitting, log, probe)
        if self._planner.missing_draws(plan, fitting, log):
            return None
        await self._planner.plan_chains(plan, fitting, log, log.promotions)
        self.begun += 1
        rounds = self._rounds(plan, log)
        if probe is None:
            await self._work_off(plan, rounds, log)
        else:
            await self._try(plan, rounds, log, probe)
            if rounds.next_rounds():
                return None
        while True:
            await self._measure_promoted(plan, rounds, log, probe)
            if grown_rounds(plan.grown, log):
                return None
            if not await self._promote(plan, log, growths):
                return self._result(plan, rounds, log)
            plan, fitting = self._begun(log)
            await self._planner.plan_chains(plan, fitting, log, log.promotions)

    def _begun(self, log: RolloutLog) -> tuple[UnitPlan, Sequence[InputRow]]:
        """A plan with the bare problems of a unit, and the rows that fit the engine's context."""
        plan = UnitPlan()
        return plan, self._planner.with_roots(plan, log.rows)

    def _result(self, plan: UnitPlan, rounds: Rounds, log: RolloutLog) -> UnitResult:
        learner = self._estimator.learner
        return UnitResult(
            readings=log.readings,
            chains=plan.chains,
            trials=trials_of(with_passed(log.outcomes, log.promotions or ()).values()),
            state=None if learner is None else learner.learn(log.state, plan.trees, log.trials(plan.asked)),
            rejects=plan.rejects,
            totals=totals_of(plan, log, rounds.n_spent()),
        )

    def _rounds(self, plan: UnitPlan, log: RolloutLog) -> Rounds:
        return Rounds(log, plan.trees, self._estimator)

    async def _draw(
        self, requests: Sequence[Request], rows: Sequence[InputRow], log: RolloutLog, probe: Probe | None
    ) -> None:
        """Sample chains for problems without a chain, and commit them, because prefixes are made from them."""
        if not requests:
            return
        row_of = {row.problem.problem_id: row for row in rows if row.solution is None}
        to_sample, written_off = _divided(requests, probe)
        for completion in written_off:
            log.add_solution(await self._drawer.solution(row_of[completion.request.problem.problem_id], completion))
        self._put(to_sample, log)
        async for batch in sample_batches(self._engine, to_sample, keep_tokens=True):
            self.backpressure.answer(len(batch))
            for completion in batch:
                log.add_solution(await self._drawer.solution(row_of[completion.request.problem.problem_id], completion))
        await log.flush()

    async def _work_off(self, plan: UnitPlan, rounds: Rounds, log: RolloutLog) -> None:
        """Sample rounds until every problem is done. A problem's next round begins when its last one is complete and the engine
        needs requests."""
        work = self._work(plan, rounds, log)
        sampling: set[asyncio.Task[None]] = set()
        due = asyncio.create_task(self._due(work.arrivals))
        asked = rounds.next_rounds()
        open_prefixes = sum(map(_samplable, plan.trees))
        self.prefixes += open_prefixes
        self.decided += open_prefixes - _samplable_of(asked)
        try:
            while True:
                if asked:
                    work.arrivals.expect(asked)
                    sampling.add(asyncio.create_task(self._sample(self._announced(plan, asked, log), work)))
                if due.done():
                    self.backpressure.end_turn()
                    due = asyncio.create_task(self._due(work.arrivals))
                if not sampling and not work.arrivals.any_complete:
                    return
                done, _ = await asyncio.wait({*sampling, due}, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                sampling -= done
                asked = []
                if due in done:
                    complete = work.arrivals.complete()
                    asked = rounds.next(complete)
                    self.decided += sum(map(_samplable, complete)) - _samplable_of(asked)
        finally:
            for task in sampling:
                task.cancel()
            if not due.cancel():
                self.backpressure.end_turn()

    async def _due(self, arrivals: Arrivals) -> None:
        """Return when it is time to take decisions."""
        await arrivals.wait()
        await self.backpressure.turn()

    async def _try(self, plan: UnitPlan, rounds: Rounds, log: RolloutLog, probe: Probe) -> None:
        """Sample those of the first rollouts that `probe` names."""
        work = self._work(plan, rounds, log)
        asked = rounds.next_rounds()
        work.arrivals.expect(asked)
        to_sample, written_off = _divided(_requests(plan, asked), probe)
        self.planned += len(written_off)
        for completion in written_off:
            self._record(completion, NO_COMPLETION, work)
        self._announce(to_sample, log)
        await self._sample(to_sample, work)

    async def _measure_promoted(self, plan: UnitPlan, rounds: Rounds, log: RolloutLog, probe: Probe | None) -> None:
        """Sample what promoted prefixes lack, or the part that `probe` names."""
        work = self._work(plan, rounds, log)
        asked = grown_rounds(plan.grown, log)
        work.arrivals.expect(asked)
        to_sample, written_off = _divided(_requests(plan, asked), probe)
        self.prefixes += len(asked)
        self.planned += len(written_off)
        for completion in written_off:
            self._record(completion, NO_COMPLETION, work)
        self._announce(to_sample, log)
        await self._sample(to_sample, work)
        self.decided += len(asked)

    async def _promote(self, plan: UnitPlan, log: RolloutLog, growths: Sequence[Growth]) -> bool:
        """Promote the next prefixes of a unit whose rollouts are all finished. False if its growths are done."""
        todo = [growth for growth in growths if growth.number >= log.growths]
        if not todo:
            return False
        await log.flush()
        found = await asyncio.to_thread(self._promoter.promotions, plan, log, todo)
        log.promote(found)
        await log.flush()
        return bool(found)

    def _work(self, plan: UnitPlan, rounds: Rounds, log: RolloutLog) -> _Work:
        # Rollouts are searched for the steps of chains only if the estimator uses the result.
        return _Work(
            log=log,
            rounds=rounds,
            steps=PrefixMatcher(plan.trees if self._estimator.follows_steps else (), plan.prefixes),
        )

    def _announced(self, plan: UnitPlan, rounds: Iterable[Round], log: RolloutLog) -> list[Request]:
        requests = _requests(plan, rounds)
        self._announce(requests, log)
        return requests

    def _announce(self, requests: Sequence[Request], log: RolloutLog) -> None:
        self.planned += len(requests)
        self._put(requests, log)

    def _put(self, requests: Sequence[Request], log: RolloutLog) -> None:
        """Note that requests are sent to the engine."""
        self.backpressure.ask(len(requests))
        self.backpressure.ready(log.unit_id)
        self.prompts.ask(log.unit_id, requests)

    async def _sample(self, requests: Sequence[Request], work: _Work) -> None:
        slow: list[asyncio.Task[None]] = []
        try:
            keep_tokens = self._estimator.follows_steps or self._store_tokens
            async for batch in sample_batches(self._engine, requests, keep_tokens=keep_tokens):
                self.backpressure.answer(len(batch))
                for completion in batch:
                    request = completion.request
                    grade = self.judge.at_once(request.problem, completion, request.prefix.text)
                    if grade is None:
                        await self.judge.wait_for_capacity()
                        slow.append(asyncio.create_task(self._grade_later(completion, work)))
                    else:
                        self._record(completion, grade, work)
            await asyncio.gather(*slow)
        finally:
            for task in slow:
                task.cancel()

    async def _grade_later(self, completion: Completion, work: _Work) -> None:
        request = completion.request
        self._record(completion, await self.judge.in_time(request.problem, completion, request.prefix.text), work)

    def _record(self, completion: Completion, grade: Grade, work: _Work) -> None:
        request, prefix_id = completion.request, completion.request.prefix.prefix_id
        work.log.add_rollout(self._rollout(completion, grade, work.steps))
        work.arrivals.take(request)
        self.rollouts += 1
        self.tokens += completion.n_tokens
        self._truncated += completion.finish is Finish.LENGTH
        if completion.finish is Finish.ABORT:
            self._aborted += 1
        else:
            self._verdicts[grade.verdict] += 1
        if (
            self._estimator.stops_early
            and (issues := work.arrivals.under_way(prefix_id))
            and work.rounds.is_finished(prefix_id)
        ):
            self._engine.abort([rollout_id(prefix_id, issue) for issue in issues])

    def _rollout(self, completion: Completion, grade: Grade, steps: PrefixMatcher) -> Rollout:
        """The rollout, with its tokens if they are to be stored. The prefix that they reproduce is found for estimators that
        use it."""
        reached = None
        if self._estimator.follows_steps and completion.token_ids:
            reached = steps.reached_prefix(completion.request.prefix.prefix_id, completion.token_ids)
        request = completion.request
        return Rollout(
            rollout_id=request.request_id,
            prefix_id=request.prefix.prefix_id,
            problem_id=request.problem.problem_id,
            step_index=request.prefix.step_index,
            issue_index=request.issue_index,
            round=request.round,
            reached_prefix_id=reached,
            text=completion.text,
            finish=completion.finish,
            n_tokens=completion.n_tokens,
            answer=grade.answer,
            verdict=grade.verdict,
            grader=self._grader,
            token_ids=completion.token_ids if self._store_tokens else (),
        )


def _samplable(tree: Tree) -> int:
    return int((~tree.closed).sum())


def _samplable_of(rounds: Iterable[Round]) -> int:
    return sum(_samplable(each.tree) for each in rounds)


def _requests(plan: UnitPlan, rounds: Iterable[Round]) -> list[Request]:
    """The requests for the missing rollouts of the rounds, with those of a prefix next to each other."""
    missing = [(prefix_id, issue, each.number) for each in rounds for prefix_id, issue in each.missing]
    missing.sort(key=lambda wanted: plan.positions[wanted[0]])
    return [
        Request(
            request_id=rollout_id(prefix_id, issue),
            issue_index=issue,
            round=number,
            problem=plan.asked[prefix_id].problem,
            prefix=plan.asked[prefix_id].prefix,
        )
        for prefix_id, issue, number in missing
    ]


def _divided(requests: Sequence[Request], probe: Probe | None) -> tuple[list[Request], list[Completion]]:
    """The requests to sample now, and the completions of requests that are written off."""
    if probe is None:
        return list(requests), []
    return (
        [request for request in requests if request.request_id in probe.only],
        [failed_completion(request) for request in requests if request.request_id in probe.failed],
    )
