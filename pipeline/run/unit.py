"""The work of one unit, beside its engine: chains -> prefixes -> requests -> completions -> verdicts -> labels.

Equal prefixes of a problem (the bare problem for one) are sampled once and shared by its chains. Requests go out longest
prefix first, all rollouts of a prefix side by side, so that the engine computes each prompt once.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.config import LabelConfig
from pipeline.engine.base import Engine
from pipeline.estimate import fixed
from pipeline.estimate.labels import step_labels
from pipeline.grading.base import Checker
from pipeline.ids import rollout_id
from pipeline.prompts import Prompter
from pipeline.records import (
    UNGRADED,
    Completion,
    Counts,
    Finish,
    Grade,
    InputRow,
    LabelledChain,
    Prefix,
    Problem,
    Reject,
    RejectReason,
    Request,
    Rollout,
    SampledSolution,
    Solution,
    StepValue,
    Totals,
    Verdict,
)
from pipeline.run.draw import SolutionDrawer
from pipeline.run.judge import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitResult:
    """Everything a unit leaves behind."""

    chains: Sequence[LabelledChain]
    rollouts: Sequence[Rollout]
    solutions: Sequence[SampledSolution]
    rejects: Sequence[Reject]
    totals: Totals


@dataclass(slots=True)
class _Tally:
    """The rollouts of one prefix while they come in."""

    prefix: Prefix
    problem: Problem
    fits: bool
    correct: int = 0
    graded: int = 0
    ungraded: int = 0
    truncated: int = 0
    tokens: int = 0

    def add(self, completion: Completion, grade: Grade) -> None:
        if grade.verdict in UNGRADED:
            self.ungraded += 1
        else:
            self.graded += 1
            self.correct += grade.verdict is Verdict.CORRECT
        self.truncated += completion.finish is Finish.LENGTH
        self.tokens += completion.n_tokens

    def counts(self) -> Counts:
        return Counts(
            correct=self.correct,
            graded=self.graded,
            ungraded=self.ungraded,
            truncated=self.truncated,
            tokens=self.tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """A chain with the prefixes whose values it needs."""

    row: InputRow
    solution: Solution
    prefixes: Sequence[Prefix]
    final_answer: str | None
    outcome: bool | None


@dataclass(slots=True)
class _Work:
    """What the stages of one unit hand on."""

    chains: list[_Chain] = field(default_factory=list)
    tallies: dict[str, _Tally] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    rollouts: list[Rollout] = field(default_factory=list)
    solutions: list[SampledSolution] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    roots: dict[str, Prefix] = field(default_factory=dict)
    solution_tokens: int = 0


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

    async def label(self, rows: Sequence[InputRow]) -> UnitResult:
        """All chains of the unit's rows, labelled. Raises EngineDied when the engine stops working."""
        work = _Work()
        fitting = self._with_roots(work, rows)
        draws = await self._draw([row for row in fitting if row.solution is None], work)
        for row in fitting:
            for solution in [row.solution] if row.solution else draws[row]:
                await self._plan_chain(work, row, solution)
        self.begun += 1
        self.planned += len(work.requests)
        await self._sample(work)
        labelled = [self._labelled(work, chain) for chain in work.chains]
        return UnitResult(
            chains=labelled,
            rollouts=work.rollouts,
            solutions=work.solutions,
            rejects=work.rejects,
            totals=_totals(work),
        )

    def _with_roots(self, work: _Work, rows: Sequence[InputRow]) -> list[InputRow]:
        """The rows whose bare problem fits the context; the others are rejected."""
        fitting = []
        for row in rows:
            problem = row.problem
            if problem.problem_id not in work.roots:
                work.roots[problem.problem_id] = self._prompter.root(problem)
            root = work.roots[problem.problem_id]
            if self._prompter.fits(root):
                fitting.append(row)
            else:
                work.rejects.append(self._too_long(row, root, step_index=None))
        return fitting

    async def _draw(self, rows: Sequence[InputRow], work: _Work) -> dict[InputRow, list[Solution]]:
        """Chains sampled by the policy for problems that came without any."""
        kept: dict[InputRow, list[Solution]] = {}
        for draw in await self._drawer.draw(rows, work.roots) if rows else []:
            work.solutions.extend(draw.solutions)
            work.solution_tokens += draw.tokens
            work.rejects.extend(draw.rejects)
            kept[draw.row] = list(draw.kept)
        return kept

    async def _plan_chain(self, work: _Work, row: InputRow, solution: Solution) -> None:
        root = work.roots[row.problem.problem_id]
        prefixes = self._prompter.prefixes(root, row.problem, solution)
        final_answer, outcome = await self._judge.outcome(row.problem, solution)
        work.chains.append(
            _Chain(row=row, solution=solution, prefixes=prefixes, final_answer=final_answer, outcome=outcome)
        )
        to_measure = prefixes if outcome is None else prefixes[:-1]
        for prefix in reversed(to_measure):
            fits = self._prompter.fits(prefix)
            if not fits:
                work.rejects.append(self._too_long(row, prefix, step_index=prefix.step_index))
            self._ask(work, row.problem, prefix, fits=fits)
        self._ask(work, row.problem, root, fits=True)

    def _ask(self, work: _Work, problem: Problem, prefix: Prefix, *, fits: bool) -> None:
        """Queue the rollouts of a prefix, unless an equal prefix has queued them already."""
        if prefix.prefix_id in work.tallies:
            return
        work.tallies[prefix.prefix_id] = _Tally(prefix=prefix, problem=problem, fits=fits)
        if fits:
            work.requests.extend(
                Request(
                    request_id=rollout_id(prefix.prefix_id, issue), issue_index=issue, problem=problem, prefix=prefix
                )
                for issue in range(fixed.owed(0, self._config.sampling.rollouts))
            )

    async def _sample(self, work: _Work) -> None:
        slow: list[asyncio.Task[None]] = []
        try:
            async for batch in self._engine.generate(work.requests):
                for completion in batch:
                    tally = work.tallies[completion.request.prefix.prefix_id]
                    grade = self._judge.at_once(tally.problem, completion, tally.prefix.text)
                    if grade is None:
                        slow.append(asyncio.create_task(self._grade_later(work, tally, completion)))
                    else:
                        self._record(work, tally, completion, grade)
            await asyncio.gather(*slow)
        finally:
            for task in slow:
                task.cancel()

    async def _grade_later(self, work: _Work, tally: _Tally, completion: Completion) -> None:
        self._record(work, tally, completion, await self._judge.grade(tally.problem, completion, tally.prefix.text))

    def _record(self, work: _Work, tally: _Tally, completion: Completion, grade: Grade) -> None:
        tally.add(completion, grade)
        work.rollouts.append(Rollout(completion=completion, grade=grade))
        self.rollouts += 1
        self.tokens += completion.n_tokens

    def _labelled(self, work: _Work, chain: _Chain) -> LabelledChain:
        estimator = self._config.estimator

        def measured(prefix: Prefix) -> StepValue:
            return fixed.measured(work.tallies[prefix.prefix_id].counts(), estimator)

        root = measured(work.roots[chain.row.problem.problem_id])
        if chain.outcome is None:
            steps = [measured(prefix) for prefix in chain.prefixes]
        else:
            steps = [*(measured(prefix) for prefix in chain.prefixes[:-1]), fixed.terminal(chain.outcome)]
        return LabelledChain(
            problem=chain.row.problem,
            solution=chain.solution,
            final_answer=chain.final_answer,
            outcome=chain.outcome,
            root=root,
            steps=tuple(steps),
            labels=step_labels(root, steps, estimator),
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


def _totals(work: _Work) -> Totals:
    verdicts = [rollout.grade.verdict for rollout in work.rollouts]
    rejected_rows = sum(reject.step_index is None for reject in work.rejects)
    return Totals(
        used=-rejected_rows,
        rejected=rejected_rows,
        problems=len({chain.row.problem.problem_id for chain in work.chains}),
        chains=len(work.chains),
        prefixes=len(work.tallies),
        rollouts=len(verdicts),
        tokens=sum(rollout.completion.n_tokens for rollout in work.rollouts),
        correct=verdicts.count(Verdict.CORRECT),
        incorrect=verdicts.count(Verdict.INCORRECT),
        no_answer=verdicts.count(Verdict.NO_ANSWER),
        ungraded=sum(verdict in UNGRADED for verdict in verdicts),
        truncated=sum(rollout.completion.finish is Finish.LENGTH for rollout in work.rollouts),
        too_long=sum(not tally.fits for tally in work.tallies.values()),
        solution_tokens=work.solution_tokens,
    )
