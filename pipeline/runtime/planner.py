"""Plans a unit: its chains (given or sampled by the policy), their prefixes, and the rows and prefixes that cannot be used.

Equal prefixes of a problem, such as the bare problem, are sampled once and shared by its chains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pipeline.config.choices import Keep
from pipeline.config.label import DataConfig, PromptConfig, SamplingConfig
from pipeline.core.ids import content_id, rollout_id
from pipeline.core.records import (
    UNGRADED,
    Chain,
    ChainShape,
    Completion,
    Finish,
    InputRow,
    Prefix,
    Problem,
    Promotion,
    Reject,
    RejectReason,
    Request,
    SampledSolution,
    Solution,
    Totals,
    Verdict,
)
from pipeline.data.grown import grown_chains, grown_prefixes
from pipeline.data.prompts import Prompter, count_problems, cut_on_tokens
from pipeline.data.steps import split
from pipeline.engines.base import PolicyFacts
from pipeline.estimators.tree import Tree, measured_prefixes, trees_of
from pipeline.runtime.async_grader import AsyncGrader
from pipeline.runtime.rollout_log import RolloutLog


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPrefix:
    """A prefix whose value is to be measured. `fits`: whether it fits into the policy's context."""

    prefix: Prefix
    problem: Problem
    fits: bool


@dataclass
class UnitPlan:
    """The plan of one unit.

    `rows`: those whose bare problems fit into the context. `asked`: the measured prefixes in the best order for sampling,
    longest first, so that the engine computes each prompt once. `trees`: the tree of prefixes of each problem, without those
    that `grow` promoted: `grown` has the promotion of each of these, by prefix id.
    """

    rows: list[InputRow] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    asked: dict[str, PlannedPrefix] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)
    roots: dict[str, Prefix] = field(default_factory=dict)
    trees: list[Tree] = field(default_factory=list)
    grown: dict[str, Promotion] = field(default_factory=dict)

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each prefix in the order of `asked`. Only read it once the plan is complete."""
        return {prefix_id: position for position, prefix_id in enumerate(self.asked)}

    @property
    def prefixes(self) -> dict[str, Prefix]:
        """The prefixes of `asked`, by id."""
        return {prefix_id: asked.prefix for prefix_id, asked in self.asked.items()}


Draws = Mapping[tuple[str, int], SampledSolution]
"""The chains that the policy has sampled, by (problem id, draw)."""


class Planner:
    """Plans units for one policy, of which it draws `sampling.solutions` chains for each row without a chain.

    These chains do not count as rollouts of the bare problem: with sampling.keep=mixed they decide which problems are kept, so
    they would bias its value.
    """

    def __init__(
        self,
        prompt: PromptConfig,
        sampling: SamplingConfig,
        data: DataConfig,
        policy: PolicyFacts,
        judge: AsyncGrader,
    ) -> None:
        self._sampling = sampling
        self._data = data
        self._policy = policy
        self._judge = judge
        self._prompter = Prompter(
            tokenizer=policy.tokenizer,
            config=prompt,
            max_tokens=sampling.max_tokens,
            max_model_len=policy.max_model_len,
        )

    def begun(self, rows: Sequence[InputRow]) -> UnitPlan:
        """A plan with the bare problems of rows. Those that do not fit into the context are rejected."""
        plan = UnitPlan()
        for row in rows:
            problem = row.problem
            if problem.problem_id not in plan.roots:
                plan.roots[problem.problem_id] = self._prompter.root(problem, row.again)
            root = plan.roots[problem.problem_id]
            if self._prompter.fits(root):
                plan.rows.append(row)
            else:
                plan.rejects.append(self._too_long(row, root, step_index=None))
        return plan

    def missing_draws(self, plan: UnitPlan, drawn: Draws) -> list[Request]:
        """The requests for the chains that are still to be sampled, for rows without a chain."""
        return [
            request
            for row in plan.rows
            if row.solution is None
            for request in self._draws(row, plan.roots[row.problem.problem_id])
            if (row.problem.problem_id, request.issue_index) not in drawn
        ]

    async def plan_chains(
        self,
        plan: UnitPlan,
        drawn: Draws,
        promotions: Sequence[Promotion] | None = None,
    ) -> None:
        """Add the chains of the rows, given or sampled, and their prefixes to the plan, and what was promoted. A row whose
        sampled chains are not kept is rejected."""
        chosen = [(row, solution) for row in plan.rows for solution in self._solutions(plan, row, drawn)]
        shapes = [await self._plan_chain(plan, *each) for each in chosen]
        closed = {prefix_id for prefix_id, asked in plan.asked.items() if not asked.fits}
        plan.trees = trees_of(shapes, closed)
        if promotions is not None:
            plan.chains = grown_chains(plan.chains, promotions)
            self._ask_promoted(plan, promotions)

    def _ask_promoted(self, plan: UnitPlan, promotions: Sequence[Promotion]) -> None:
        problems = {chain.problem.problem_id: chain.problem for chain in plan.chains}
        known = plan.prefixes
        for each in promotions:
            problem = problems.get(each.problem_id)
            if problem is None or each.prefix_id not in known:
                continue
            *_, last = grown_prefixes(known[each.prefix_id], each)
            known[last.prefix_id] = last
            plan.grown[last.prefix_id] = each
            plan.asked.setdefault(last.prefix_id, PlannedPrefix(prefix=last, problem=problem, fits=True))

    async def solution(self, row: InputRow, completion: Completion) -> SampledSolution:
        """The graded chain from a draw of `row`."""
        data, decode, ids = self._data, self._policy.tokenizer.decode, completion.token_ids
        text = decode(ids)
        cut = cut_on_tokens(text, split(text, data.splitter, data.pattern), ids, decode)
        problem_id = row.problem.problem_id
        grade = await self._judge.grade(row.problem, completion, completion.request.prefix.text)
        return SampledSolution(
            chain_id=content_id("sampled", problem_id, ",".join(map(str, ids)), ",".join(map(str, cut.token_ends))),
            problem_id=problem_id,
            source_id=row.source_id,
            draw=completion.request.issue_index,
            text=text,
            token_ids=ids,
            ends=cut.ends,
            token_ends=cut.token_ends,
            finish=completion.finish,
            answer=grade.answer,
            verdict=grade.verdict,
        )

    def fits(self, prefix: Prefix) -> bool:
        """Whether rollouts of a prefix fit into the policy's context."""
        return self._prompter.fits(prefix)

    def _draws(self, row: InputRow, root: Prefix) -> list[Request]:
        """The requests for all draws of a row. `issue_index` is the number of the draw."""
        return [
            Request(
                request_id=rollout_id(content_id("draw", row.problem.problem_id), draw),
                issue_index=draw,
                problem=row.problem,
                prefix=root,
            )
            for draw in range(self._sampling.solutions)
        ]

    def _solutions(self, plan: UnitPlan, row: InputRow, drawn: Draws) -> Sequence[Solution]:
        """The chain of a row, or those of its draws that are kept; without any the row is rejected."""
        if row.solution is not None:
            return [row.solution]
        solutions = [drawn[row.problem.problem_id, draw] for draw in range(self._sampling.solutions)]
        graded = [each.verdict for each in solutions if each.verdict not in UNGRADED]
        right = graded.count(Verdict.CORRECT)
        distinct = {each.chain_id: each.solution for each in solutions if each.ends}
        if not distinct:
            detail = f"all {len(solutions)} sampled solutions are empty: check policy.prompt"
            plan.rejects.append(_reject(row, RejectReason.NO_STEPS, detail))
        elif self._sampling.keep is Keep.mixed and right in (0, len(graded)):
            detail = f"{right} of {len(graded)} graded sampled solutions are correct (sampling.keep=mixed)"
            plan.rejects.append(_reject(row, RejectReason.FILTERED, detail))
            return []
        return list(distinct.values())

    async def _plan_chain(self, plan: UnitPlan, row: InputRow, solution: Solution) -> ChainShape:
        root = plan.roots[row.problem.problem_id]
        prefixes = self._prompter.prefixes(root, solution, row.again)
        final_answer, outcome = await self._judge.outcome(row.problem, solution, root.text)
        if final_answer is None:
            outcome = row.given_outcome
        chain = Chain(
            problem=row.problem,
            solution=solution,
            root_prefix_id=root.prefix_id,
            prefix_ids=tuple(prefix.prefix_id for prefix in prefixes),
            final_answer=final_answer,
            outcome=outcome,
            policy=self._policy.policy,
        )
        plan.chains.append(chain)
        shape = replace(chain.shape, prices=rollout_prices([len(prefix.prompt_ids) for prefix in (root, *prefixes)]))
        measured = set(measured_prefixes(shape))
        for prefix in reversed(prefixes):
            if prefix.prefix_id in measured:
                fits = self._prompter.fits(prefix)
                if not fits:
                    plan.rejects.append(self._too_long(row, prefix, step_index=prefix.step_index))
                plan.asked.setdefault(prefix.prefix_id, PlannedPrefix(prefix=prefix, problem=row.problem, fits=fits))
        plan.asked.setdefault(root.prefix_id, PlannedPrefix(prefix=root, problem=row.problem, fits=True))
        return shape

    def _too_long(self, row: InputRow, prefix: Prefix, *, step_index: int | None) -> Reject:
        sampling, context = self._sampling, self._policy.max_model_len
        what = "the problem alone" if step_index is None else f"the prefix of {step_index} steps"
        return Reject(
            location=row.location,
            reason=RejectReason.CONTEXT,
            detail=(
                f"{what} has {len(prefix.prompt_ids)} tokens; with sampling.max_tokens={sampling.max_tokens} this exceeds "
                f"the policy's context of {context} tokens: lower sampling.max_tokens or raise policy.max_model_len"
            ),
            source_id=row.source_id,
            step_index=step_index,
        )


def _reject(row: InputRow, reason: RejectReason, detail: str) -> Reject:
    return Reject(location=row.location, reason=reason, detail=detail, source_id=row.source_id)


def rollout_prices(lengths: Sequence[int]) -> tuple[float, ...]:
    """The expected cost of a rollout of each prefix in tokens: the rest of its chain, and one mean step more.

    `lengths`: tokens of the prefixes of a chain, from the bare problem to the whole chain.
    """
    step = max(1.0, (lengths[-1] - lengths[0]) / (len(lengths) - 1))
    return tuple(lengths[-1] - length + step for length in lengths)


def totals_of(plan: UnitPlan, log: RolloutLog, spent: int) -> Totals:
    """The totals of the unit; `spent`: see `Totals`."""
    outcomes = log.outcomes.values()
    verdicts = [outcome.verdict for outcome in outcomes if outcome.finish is not Finish.ABORT]
    rejected_rows = sum(reject.step_index is None for reject in plan.rejects)
    return Totals(
        used=-rejected_rows,
        rejected=rejected_rows,
        problems=count_problems(plan.chains),
        chains=len(plan.chains),
        promoted=sum(bool(chain.grown) for chain in plan.chains),
        prefixes=len(plan.asked),
        rollouts=len(outcomes),
        tokens=sum(outcome.n_tokens for outcome in outcomes),
        correct=verdicts.count(Verdict.CORRECT),
        incorrect=verdicts.count(Verdict.INCORRECT),
        no_answer=verdicts.count(Verdict.NO_ANSWER),
        ungraded=sum(verdict in UNGRADED for verdict in verdicts),
        aborted=len(outcomes) - len(verdicts),
        truncated=sum(outcome.finish is Finish.LENGTH for outcome in outcomes),
        engine_failed=sum(outcome.finish is Finish.ENGINE_FAILED for outcome in outcomes),
        too_long=sum(not asked.fits for asked in plan.asked.values()),
        spent=spent,
        solution_tokens=sum(len(drawn.token_ids) for drawn in log.solutions.values()),
    )
