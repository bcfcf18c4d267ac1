"""The work of one unit, beside its engine: chains -> prefixes -> requests -> completions -> verdicts -> labels.

Equal prefixes of a problem (the bare problem for one) are sampled once and shared by its chains. Requests go out longest
prefix first, all rollouts of a prefix side by side, so that the engine computes each prompt once. What the unit's journal has
is never asked for again; what comes in goes there, and is committed every `run.flush_seconds`.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.config import LabelConfig
from pipeline.engine.base import Engine
from pipeline.errors import EngineDied
from pipeline.estimate import fixed
from pipeline.estimate.chain import chain_values, measured_prefixes
from pipeline.estimate.counts import counts_of
from pipeline.grading.base import Checker
from pipeline.ids import rollout_id
from pipeline.prompts import Prompter
from pipeline.records import (
    UNGRADED,
    Completion,
    Counts,
    Finish,
    InputRow,
    LabelledChain,
    Prefix,
    Problem,
    Reject,
    RejectReason,
    Request,
    Rollout,
    Solution,
    Totals,
    Verdict,
)
from pipeline.run.draw import SolutionDrawer
from pipeline.run.journal import Journal
from pipeline.run.judge import Judge
from pipeline.run.sampling import failed, sampled


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A part of a unit's work: sample `only` these requests, and write off those that engines do not survive."""

    only: frozenset[str]
    failed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitResult:
    """What a unit's rollouts amount to, after so many `readings` of its log."""

    readings: int
    chains: Sequence[LabelledChain]
    rejects: Sequence[Reject]
    totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A prefix whose value is wanted."""

    prefix: Prefix
    problem: Problem
    fits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """A chain with the prefixes whose values it needs."""

    row: InputRow
    solution: Solution
    prefixes: Sequence[Prefix]
    final_answer: str | None
    outcome: bool | None


@dataclass(slots=True)
class _Plan:
    """What is wanted of one unit."""

    chains: list[_Chain] = field(default_factory=list)
    asked: dict[str, _Asked] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)
    roots: dict[str, Prefix] = field(default_factory=dict)


class UnitLabeller:
    """Labels units with one engine and one checker; several units may be in work at once.

    `begun` units have asked for `planned` rollouts so far; `rollouts` and `tokens` of them have come in.
    """

    def __init__(self, config: LabelConfig, engine: Engine, checker: Checker) -> None:
        self._config = config
        self._engine = engine
        self._judge = Judge(checker)
        self._drawer = SolutionDrawer(config, engine, self._judge)
        self._prompter = Prompter(
            tokenizer=engine.tokenizer,
            config=config.policy.prompt,
            max_tokens=config.sampling.max_tokens,
            max_model_len=engine.max_model_len,
        )
        self.begun = 0
        self.planned = 0
        self.rollouts = 0
        self.tokens = 0

    async def owed(self, rows: Sequence[InputRow], journal: Journal) -> list[str]:
        """Ids of the requests to be sampled next: draws, and when these have all come in, rollouts."""
        plan = _Plan()
        fitting = self._with_roots(plan, rows)
        draws = self._owed_draws(plan, fitting, journal)
        if draws:
            return [request.request_id for request in draws]
        await self._plan_chains(plan, fitting, journal)
        return [request.request_id for request in self._owed_rollouts(plan, journal)]

    async def label(self, rows: Sequence[InputRow], journal: Journal, probe: Probe | None = None) -> UnitResult | None:
        """All chains of the unit's rows, labelled; None where `probe` left something owed.

        What has come in is committed also when the engine stops working, which raises EngineDied. Raises StoreError.
        """
        try:
            return await self._with_flushes(journal, self._label(rows, journal, probe))
        except EngineDied:
            await journal.flush()
            raise

    async def _label(self, rows: Sequence[InputRow], journal: Journal, probe: Probe | None) -> UnitResult | None:
        plan = _Plan()
        fitting = self._with_roots(plan, rows)
        await self._draw(self._owed_draws(plan, fitting, journal), fitting, journal, probe)
        if self._owed_draws(plan, fitting, journal):
            await journal.flush()
            return None
        await self._plan_chains(plan, fitting, journal)
        requests = self._owed_rollouts(plan, journal)
        self.begun += 1
        self.planned += len(requests)
        await self._sample(requests, journal, probe)
        if self._owed_rollouts(plan, journal):
            await journal.flush()
            return None
        counts = counts_of(journal.facts.values())
        return UnitResult(
            readings=journal.readings,
            chains=[self._labelled(chain, plan.roots[chain.row.problem.problem_id], counts) for chain in plan.chains],
            rejects=plan.rejects,
            totals=_totals(plan, journal),
        )

    async def _with_flushes(self, journal: Journal, work: Coroutine[Any, Any, UnitResult | None]) -> UnitResult | None:
        working = asyncio.create_task(work)
        flushing = asyncio.create_task(self._flush_regularly(journal))
        try:
            await asyncio.wait([working, flushing], return_when=asyncio.FIRST_COMPLETED)
            if flushing.done():
                flushing.result()
            return await working
        finally:
            for task in (working, flushing):
                task.cancel()

    async def _flush_regularly(self, journal: Journal) -> None:
        while True:
            await asyncio.sleep(self._config.run.flush_seconds)
            await journal.flush()

    def _with_roots(self, plan: _Plan, rows: Sequence[InputRow]) -> list[InputRow]:
        """The rows whose bare problem fits the context; the others are rejected."""
        fitting = []
        for row in rows:
            problem = row.problem
            if problem.problem_id not in plan.roots:
                plan.roots[problem.problem_id] = self._prompter.root(problem)
            root = plan.roots[problem.problem_id]
            if self._prompter.fits(root):
                fitting.append(row)
            else:
                plan.rejects.append(self._too_long(row, root, step_index=None))
        return fitting

    def _owed_draws(self, plan: _Plan, rows: Sequence[InputRow], journal: Journal) -> list[Request]:
        return [
            request
            for row in rows
            if row.solution is None
            for request in self._drawer.requests(row, plan.roots[row.problem.problem_id])
            if (row.problem.problem_id, request.issue_index) not in journal.solutions
        ]

    async def _draw(
        self, requests: Sequence[Request], rows: Sequence[InputRow], journal: Journal, probe: Probe | None
    ) -> None:
        """Have chains sampled for problems that came without any, and settle which: prefixes are made of them."""
        if not requests:
            return
        row_of = {row.problem.problem_id: row for row in rows if row.solution is None}
        to_sample, written_off = _divided(requests, probe)
        for completion in written_off:
            journal.add_solution(await self._drawer.solution(row_of[completion.request.problem.problem_id], completion))
        async for batch in sampled(self._engine, to_sample, keep_tokens=True):
            for completion in batch:
                journal.add_solution(
                    await self._drawer.solution(row_of[completion.request.problem.problem_id], completion)
                )
        await journal.flush()

    async def _plan_chains(self, plan: _Plan, rows: Sequence[InputRow], journal: Journal) -> None:
        for row in rows:
            if row.solution is not None:
                await self._plan_chain(plan, row, row.solution)
                continue
            draws = range(self._config.sampling.solutions)
            drawn = self._drawer.sorted_out(row, [journal.solutions[row.problem.problem_id, draw] for draw in draws])
            plan.rejects.extend(drawn.rejects)
            for solution in drawn.kept:
                await self._plan_chain(plan, row, solution)

    async def _plan_chain(self, plan: _Plan, row: InputRow, solution: Solution) -> None:
        root = plan.roots[row.problem.problem_id]
        prefixes = self._prompter.prefixes(root, solution)
        final_answer, outcome = await self._judge.outcome(row.problem, solution)
        plan.chains.append(
            _Chain(row=row, solution=solution, prefixes=prefixes, final_answer=final_answer, outcome=outcome)
        )
        measured = set(measured_prefixes([prefix.prefix_id for prefix in prefixes], outcome))
        for prefix in reversed(prefixes):
            if prefix.prefix_id in measured:
                fits = self._prompter.fits(prefix)
                if not fits:
                    plan.rejects.append(self._too_long(row, prefix, step_index=prefix.step_index))
                plan.asked.setdefault(prefix.prefix_id, _Asked(prefix=prefix, problem=row.problem, fits=fits))
        plan.asked.setdefault(root.prefix_id, _Asked(prefix=root, problem=row.problem, fits=True))

    def _owed_rollouts(self, plan: _Plan, journal: Journal) -> list[Request]:
        """What the estimator asks for and the journal does not have."""
        wanted = fixed.owed(0, self._config.sampling.rollouts)
        return [
            Request(request_id=request_id, issue_index=issue, problem=asked.problem, prefix=asked.prefix)
            for asked in plan.asked.values()
            if asked.fits
            for issue in range(wanted)
            if (request_id := rollout_id(asked.prefix.prefix_id, issue)) not in journal.facts
        ]

    async def _sample(self, requests: Sequence[Request], journal: Journal, probe: Probe | None) -> None:
        to_sample, written_off = _divided(requests, probe)
        slow: list[asyncio.Task[None]] = []
        try:
            for completion in written_off:
                await self._grade_later(completion, journal)
            async for batch in sampled(self._engine, to_sample):
                for completion in batch:
                    request = completion.request
                    grade = self._judge.at_once(request.problem, completion, request.prefix.text)
                    if grade is None:
                        slow.append(asyncio.create_task(self._grade_later(completion, journal)))
                    else:
                        self._record(Rollout(completion=completion, grade=grade), journal)
            await asyncio.gather(*slow)
        finally:
            for task in slow:
                task.cancel()

    async def _grade_later(self, completion: Completion, journal: Journal) -> None:
        request = completion.request
        grade = await self._judge.grade(request.problem, completion, request.prefix.text)
        self._record(Rollout(completion=completion, grade=grade), journal)

    def _record(self, rollout: Rollout, journal: Journal) -> None:
        journal.add_rollout(rollout)
        self.rollouts += 1
        self.tokens += rollout.completion.n_tokens

    def _labelled(self, chain: _Chain, root: Prefix, counts: Mapping[str, Counts]) -> LabelledChain:
        prefix_ids = tuple(prefix.prefix_id for prefix in chain.prefixes)
        values = chain_values(root.prefix_id, prefix_ids, chain.outcome, counts, self._config.estimator)
        return LabelledChain(
            problem=chain.row.problem,
            solution=chain.solution,
            root_prefix_id=root.prefix_id,
            prefix_ids=prefix_ids,
            final_answer=chain.final_answer,
            outcome=chain.outcome,
            root=values.root,
            steps=values.steps,
            labels=values.labels,
        )

    def _too_long(self, row: InputRow, prefix: Prefix, *, step_index: int | None) -> Reject:
        sampling, context = self._config.sampling, self._engine.max_model_len
        what = "the problem alone" if step_index is None else f"the prefix of {step_index} steps"
        return Reject(
            place=row.place,
            reason=RejectReason.CONTEXT,
            detail=(
                f"{what} takes {len(prefix.prompt_ids)} tokens, which with sampling.max_tokens={sampling.max_tokens} exceeds "
                f"the policy's context of {context}: lower sampling.max_tokens or raise policy.max_model_len"
            ),
            source_id=row.source_id,
            step_index=step_index,
        )


def _divided(requests: Sequence[Request], probe: Probe | None) -> tuple[list[Request], list[Completion]]:
    """What is to be sampled now, and the completions of requests that are written off."""
    if probe is None:
        return list(requests), []
    return (
        [request for request in requests if request.request_id in probe.only],
        [failed(request) for request in requests if request.request_id in probe.failed],
    )


def _totals(plan: _Plan, journal: Journal) -> Totals:
    facts = journal.facts.values()
    verdicts = [fact.verdict for fact in facts]
    rejected_rows = sum(reject.step_index is None for reject in plan.rejects)
    return Totals(
        used=-rejected_rows,
        rejected=rejected_rows,
        problems=len({chain.row.problem.problem_id for chain in plan.chains}),
        chains=len(plan.chains),
        prefixes=len(plan.asked),
        rollouts=len(facts),
        tokens=sum(fact.n_tokens for fact in facts),
        correct=verdicts.count(Verdict.CORRECT),
        incorrect=verdicts.count(Verdict.INCORRECT),
        no_answer=verdicts.count(Verdict.NO_ANSWER),
        ungraded=sum(verdict in UNGRADED for verdict in verdicts),
        truncated=sum(fact.finish is Finish.LENGTH for fact in facts),
        engine_failed=sum(fact.finish is Finish.ENGINE_FAILED for fact in facts),
        too_long=sum(not asked.fits for asked in plan.asked.values()),
        solution_tokens=sum(len(drawn.solution.token_ids) for drawn in journal.solutions.values()),
    )
