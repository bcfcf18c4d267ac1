"""What a worker of `label` does with units: chains -> prefixes -> rounds of requests -> completions -> verdicts -> labels.

For each problem, the estimator decides the next round when all rollouts of the previous round have finished. Problems do not
wait for each other. Rollouts in the unit's log are never requested again. Finished rollouts go into the log, which is
committed every `run.flush_seconds`.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

from pipeline.config.grow import PickerConfig
from pipeline.config.label import LabelConfig
from pipeline.config.recorded_settings import chosen_settings
from pipeline.core.ids import rollout_id
from pipeline.core.progress import Verdicts
from pipeline.core.records import UNGRADED, Completion, Finish, Grade, Request, Rollout
from pipeline.core.tables import REJECTS
from pipeline.data.grown import with_passed
from pipeline.engines.base import Engine, Surroundings, empty_completion
from pipeline.engines.registry import open_engine, policy_for
from pipeline.estimators.base import MANY
from pipeline.estimators.labelling import labels_of
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.tree import Tree, trials_of
from pipeline.graders.question import NO_COMPLETION
from pipeline.graders.registry import checker_for, grader_version
from pipeline.pickers.registry import PICKERS, picker_for
from pipeline.runtime.answer_ending import ending_for
from pipeline.runtime.async_grader import AsyncGrader
from pipeline.runtime.distinct_prompts import DistinctPrompts
from pipeline.runtime.growing import Growth, Promoter
from pipeline.runtime.planner import Planner, UnitPlan, totals_of
from pipeline.runtime.prefix_reuse import PrefixMatcher
from pipeline.runtime.rollout_log import RolloutLog
from pipeline.runtime.rounds import Arrivals, Round, Rounds, grown_rounds
from pipeline.runtime.sampling import Backpressure, sample_batches
from pipeline.runtime.unit_log import Finished
from pipeline.runtime.worker import Probe, Snapshot, UnitTask, UnitWork
from pipeline.storage.commits import Commit
from pipeline.storage.editions import LABELS
from pipeline.storage.growths import STRENGTH, allotments
from pipeline.storage.storage import Storage
from pipeline.storage.unit_files import UnitFiles
from pipeline.storage.units import unit_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """A planned unit at work. `steps`: what its rollouts are searched for."""

    plan: UnitPlan
    log: RolloutLog
    rounds: Rounds
    steps: PrefixMatcher
    arrivals: Arrivals = field(default_factory=Arrivals)


class Labelling(UnitWork[RolloutLog]):
    """See the module. Several units share the engine and the grader."""

    def __init__(self, config: LabelConfig, engine: Engine, storage: Storage) -> None:
        self._config = config
        self._engine = engine
        # Units of a start mostly have the same growth.
        self._allotments = lru_cache(maxsize=1)(partial(allotments, storage))
        self._policy = policy_for(config.policy)
        self._estimator = estimator_for(config.estimator)
        self._checker = checker_for(config.grader)
        self._grader = grader_version()
        self._store_tokens = config.sampling.store_tokens
        self._judge = AsyncGrader(self._checker, config.grader.processes)
        self._prompts = DistinctPrompts()
        self._counts: Counter[str] = Counter()
        """Of `Snapshot`, by name."""
        self._verdicts: Counter[str] = Counter()
        """Of `Verdicts`, by name."""

    async def fetch(self) -> None:
        await self._policy.fetch()

    async def start(self) -> str:
        config, engine = self._config, self._engine
        await engine.start()
        self.backpressure = Backpressure(engine.capacity)
        self._planner = Planner(config.policy.prompt, config.sampling, config.data, engine, self._judge)
        self._promoter = Promoter(
            config.data, engine.tokenizer.decode, self._planner.fits, follows_steps=self._estimator.follows_steps
        )
        return engine.policy

    async def open(self, storage: Storage, task: UnitTask, files: UnitFiles) -> RolloutLog:
        return RolloutLog(
            files,
            rows=await asyncio.to_thread(unit_rows, storage, task.unit),
            unit_target=task.unit_target,
            learner=self._estimator.learner,
            with_tokens=self._store_tokens,
        )

    def snapshot(self) -> Snapshot:
        return Snapshot(
            **self._counts,
            verdicts=Verdicts(**self._verdicts),
            grading_seconds=self._judge.seconds,
            distinct_prompt=self._prompts.tokens,
            work=self._engine.work,
            load=replace(self._engine.load, grading=self._judge.waiting),
            hardware=self._engine.hardware,
        )

    async def close(self) -> None:
        self._judge.close()
        self._checker.close()
        await self._engine.close()

    async def missing(self, task: UnitTask, log: RolloutLog) -> list[str]:
        """Draws of chains first, and when all of them have finished, rollouts, and those of promoted prefixes in the end."""
        growths = await self._growths(task, log)
        while True:
            plan = self._planner.begun(log.rows)
            if draws := self._planner.missing_draws(plan, log.solutions):
                return [request.request_id for request in draws]
            await self._planner.plan_chains(plan, log.solutions, log.promotions)
            asked = Rounds(log, plan.trees, self._estimator).next_rounds() or grown_rounds(plan.grown, log)
            if asked or not await self._promote(plan, log, growths):
                return [request.request_id for request in _requests(plan, asked)]

    async def work(self, task: UnitTask, log: RolloutLog) -> Finished | None:
        """Label all chains of the unit's rows, then those that its growths promote."""
        growths = await self._growths(task, log)
        try:
            return await self._label(log, task.probe, growths)
        finally:
            self._prompts.end(log.unit_id)

    async def _label(self, log: RolloutLog, probe: Probe | None, growths: Sequence[Growth]) -> Finished | None:
        plan = self._planner.begun(log.rows)
        if not await self._draw(plan, log, probe):
            return None
        await self._planner.plan_chains(plan, log.solutions, log.promotions)
        self._counts["begun"] += 1
        rounds = Rounds(log, plan.trees, self._estimator)
        unit = self._at_work(plan, rounds, log)
        if probe is None:
            await self._work_off(unit)
        else:
            await self._sample_parts(unit, rounds.next_rounds(), probe)
            if rounds.next_rounds():
                return None
        while True:
            promoted = grown_rounds(plan.grown, log)
            self._counts["prefixes"] += len(promoted)
            await self._sample_parts(unit, promoted, probe)
            self._counts["decided"] += len(promoted)
            if grown_rounds(plan.grown, log):
                return None
            if not await self._promote(plan, log, growths):
                return self._finished(unit)
            plan = self._planner.begun(log.rows)
            await self._planner.plan_chains(plan, log.solutions, log.promotions)
            unit = self._at_work(plan, rounds, log)

    def _at_work(self, plan: UnitPlan, rounds: Rounds, log: RolloutLog) -> _Unit:
        # Rollouts are searched for the steps of chains only if the estimator uses the result.
        trees = plan.trees if self._estimator.follows_steps else ()
        return _Unit(plan=plan, log=log, rounds=rounds, steps=PrefixMatcher(trees, plan.prefixes))

    def _finished(self, unit: _Unit) -> Finished:
        plan, log, learner = unit.plan, unit.log, self._estimator.learner
        state = None if learner is None else learner.learn(log.state, plan.trees, log.trials(plan.asked))
        trials = trials_of(with_passed(log.outcomes, log.promotions or ()).values())
        results = {
            LABELS: labels_of(plan.chains, trials, self._estimator, state),
            REJECTS.name: REJECTS.to_table(plan.rejects),
        }
        if learner is not None:
            results[learner.table] = learner.to_table(state)
        return Finished(
            results=results,
            tally=totals_of(plan, log, unit.rounds.n_spent()).tally,
            readings=log.readings,
            learned_from=_chains_of(state, log),
        )

    async def _growths(self, task: UnitTask, log: RolloutLog) -> list[Growth]:
        return [await asyncio.to_thread(self._growth, record, log) for record in task.growths]

    def _growth(self, record: Commit, log: RolloutLog) -> Growth:
        settings = record.recorded
        picking = chosen_settings(settings, PickerConfig, PICKERS)
        return Growth(
            number=record.number,
            picker=picker_for(picking),
            budget_unit=picking.budget_unit,
            rollouts=picking.rollouts,
            strength=float(str(settings[STRENGTH])),
            threshold=self._estimator.settings.good_above,
            allotments=self._allotments(record).get(log.unit_id, {}),
        )

    async def _draw(self, plan: UnitPlan, log: RolloutLog, probe: Probe | None) -> bool:
        """Sample the chains that problems without a chain lack, and commit them, because prefixes are made from them. Returns
        whether none is missing any more."""
        requests = self._planner.missing_draws(plan, log.solutions)
        if not requests:
            return True
        row_of = {row.problem.problem_id: row for row in plan.rows if row.solution is None}

        async def add(completion: Completion) -> None:
            row = row_of[completion.request.problem.problem_id]
            log.add_solution(await self._planner.solution(row, completion))

        to_sample, written_off = _divided(requests, probe)
        for completion in written_off:
            await add(completion)
        self._put(to_sample, log)
        async for batch in sample_batches(self._engine, to_sample, keep_tokens=True):
            self.backpressure.answer(len(batch))
            for completion in batch:
                await add(completion)
        await log.flush()
        return not self._planner.missing_draws(plan, log.solutions)

    async def _work_off(self, unit: _Unit) -> None:
        """Sample rounds until every problem is done. A problem's next round begins when its last one is complete and the engine
        needs requests."""
        rounds, arrivals = unit.rounds, unit.arrivals
        sampling: set[asyncio.Task[None]] = set()
        due = asyncio.create_task(self._due(arrivals))
        asked = rounds.next_rounds()
        open_prefixes = sum(map(_samplable, unit.plan.trees))
        self._counts.update(prefixes=open_prefixes, decided=open_prefixes - _samplable_of(asked), most=self._most(unit))
        try:
            while True:
                if asked:
                    arrivals.expect(asked)
                    requests = _requests(unit.plan, asked)
                    self._announce(requests, unit.log)
                    sampling.add(asyncio.create_task(self._sample(requests, unit)))
                if due.done():
                    self.backpressure.end_turn()
                    due = asyncio.create_task(self._due(arrivals))
                if not sampling and not arrivals.any_complete:
                    return
                done, _ = await asyncio.wait({*sampling, due}, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                sampling -= done
                asked = []
                if due in done:
                    complete = arrivals.complete()
                    asked = rounds.next(complete)
                    self._counts["decided"] += sum(map(_samplable, complete)) - _samplable_of(asked)
        finally:
            for task in sampling:
                task.cancel()
            if not due.cancel():
                self.backpressure.end_turn()

    def _most(self, unit: _Unit) -> int:
        """The most rollouts that the unit can still get."""
        most = sum(self._estimator.most_rollouts(tree, self._config.sampling.rollouts) for tree in unit.plan.trees)
        return most if most >= MANY else max(0, most - len(unit.log.outcomes))

    async def _due(self, arrivals: Arrivals) -> None:
        """Return when it is time to take decisions."""
        await arrivals.wait()
        await self.backpressure.turn()

    async def _sample_parts(self, unit: _Unit, asked: Sequence[Round], probe: Probe | None) -> None:
        """Sample rounds that nothing follows, or the part of them that `probe` names."""
        unit.arrivals.expect(asked)
        to_sample, written_off = _divided(_requests(unit.plan, asked), probe)
        self._counts["planned"] += len(written_off)
        for completion in written_off:
            self._record(completion, NO_COMPLETION, unit)
        self._announce(to_sample, unit.log)
        await self._sample(to_sample, unit)

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

    def _announce(self, requests: Sequence[Request], log: RolloutLog) -> None:
        self._counts["planned"] += len(requests)
        self._put(requests, log)

    def _put(self, requests: Sequence[Request], log: RolloutLog) -> None:
        """Note that requests are sent to the engine."""
        self.backpressure.ask(len(requests))
        self.backpressure.ready(log.unit_id)
        self._prompts.ask(log.unit_id, requests)

    async def _sample(self, requests: Sequence[Request], unit: _Unit) -> None:
        slow: list[asyncio.Task[None]] = []
        try:
            keep_tokens = self._estimator.follows_steps or self._store_tokens
            async for batch in sample_batches(self._engine, requests, keep_tokens=keep_tokens):
                self.backpressure.answer(len(batch))
                for completion in batch:
                    request = completion.request
                    grade = self._judge.at_once(request.problem, completion, request.prefix.text)
                    if grade is None:
                        await self._judge.wait_for_capacity()
                        slow.append(asyncio.create_task(self._grade_later(completion, unit)))
                    else:
                        self._record(completion, grade, unit)
            await asyncio.gather(*slow)
        finally:
            for task in slow:
                task.cancel()

    async def _grade_later(self, completion: Completion, unit: _Unit) -> None:
        request = completion.request
        self._record(completion, await self._judge.in_time(request.problem, completion, request.prefix.text), unit)

    def _record(self, completion: Completion, grade: Grade, unit: _Unit) -> None:
        request, prefix_id = completion.request, completion.request.prefix.prefix_id
        unit.log.add_rollout(self._rollout(completion, grade, unit.steps))
        unit.arrivals.take(request)
        self._counts["rollouts"] += 1
        self._counts["tokens"] += completion.n_tokens
        if completion.finish is Finish.LENGTH:
            self._verdicts["truncated"] += 1
        if completion.finish is Finish.ABORT:
            self._verdicts["aborted"] += 1
        else:
            self._verdicts["ungraded" if grade.verdict in UNGRADED else grade.verdict] += 1
        if (
            self._estimator.stops_early
            and (issues := unit.arrivals.under_way(prefix_id))
            and unit.rounds.is_finished(prefix_id)
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
        [empty_completion(request, Finish.ENGINE_FAILED) for request in requests if request.request_id in probe.failed],
    )


def _chains_of(state: Any, log: RolloutLog) -> int:
    """The chains that a unit's state was learned from. Those of a unit that was whole before are in what it began with."""
    if state is None:
        return 0
    return int(log.state.chains if log.settled else state.chains)


def engine_for(config: LabelConfig, around: Surroundings) -> Engine:
    """The engine of the policy in a worker with these surroundings."""
    return open_engine(config.policy, config.sampling, ending_for(config), around)
