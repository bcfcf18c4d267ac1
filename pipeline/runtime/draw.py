"""Chains sampled by the policy itself, for problems that come without any."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.config.choices import Keep
from pipeline.config.label import DataConfig, SamplingConfig
from pipeline.core.ids import content_id, rollout_id
from pipeline.core.records import (
    UNGRADED,
    Completion,
    Finish,
    InputRow,
    Prefix,
    Reject,
    RejectReason,
    Request,
    SampledSolution,
    Solution,
    Verdict,
)
from pipeline.data.prompts import cut_on_tokens
from pipeline.data.steps import split
from pipeline.engines.base import PolicyFacts
from pipeline.runtime.judge import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What goes on of a row's draws: the distinct chains, or why the row does not."""

    row: InputRow
    kept: Sequence[Solution]
    rejects: Sequence[Reject]


class SolutionDrawer:
    """Samples `sampling.solutions` chains per row. They are no rollouts of the bare problem: with sampling.keep=mixed they
    decide which problems stay, and would bias its value."""

    def __init__(self, sampling: SamplingConfig, data: DataConfig, policy: PolicyFacts, judge: Judge) -> None:
        self._sampling = sampling
        self._data = data
        self._policy = policy
        self._judge = judge

    def requests(self, row: InputRow, root: Prefix) -> list[Request]:
        """All draws of a row; `issue_index` is the number of the draw."""
        return [
            Request(
                request_id=rollout_id(content_id("draw", row.problem.problem_id), draw),
                issue_index=draw,
                problem=row.problem,
                prefix=root,
            )
            for draw in range(self._sampling.solutions)
        ]

    def sorted_out(self, row: InputRow, solutions: Sequence[SampledSolution]) -> Draw:
        """What goes on of a row, from all its draws in their order."""
        graded = [drawn.grade.verdict for drawn in solutions if drawn.grade.verdict not in UNGRADED]
        right = graded.count(Verdict.CORRECT)
        distinct = {drawn.solution.chain_id: drawn.solution for drawn in solutions if drawn.solution.ends}
        kept, rejects = list(distinct.values()), []
        if not kept:
            detail = f"all {len(solutions)} sampled solutions are empty: check policy.prompt"
            rejects = [_reject(row, RejectReason.NO_STEPS, detail)]
        elif self._sampling.keep is Keep.mixed and right in (0, len(graded)):
            kept = []
            detail = f"of {len(graded)} sampled solutions that could be graded {right} are right (sampling.keep=mixed)"
            rejects = [_reject(row, RejectReason.FILTERED, detail)]
        return Draw(row=row, kept=kept, rejects=rejects)

    async def solution(self, row: InputRow, completion: Completion) -> SampledSolution:
        """The chain that a draw of `row` came to, graded."""
        data, decode, ids = self._data, self._policy.tokenizer.decode, completion.token_ids
        text = decode(ids)
        cut = cut_on_tokens(text, split(text, data.splitter, data.pattern), ids, decode)
        problem_id = row.problem.problem_id
        solution = Solution(
            chain_id=content_id("sampled", problem_id, ",".join(map(str, ids)), ",".join(map(str, cut.token_ends))),
            problem_id=problem_id,
            source_id=row.source_id,
            text=text,
            ends=cut.ends,
            token_ids=ids,
            token_ends=cut.token_ends,
            complete=completion.finish is Finish.STOP,
        )
        return SampledSolution(
            solution=solution,
            draw=completion.request.issue_index,
            finish=completion.finish,
            grade=await self._judge.grade(row.problem, completion, ""),
        )


def _reject(row: InputRow, reason: RejectReason, detail: str) -> Reject:
    return Reject(place=row.place, reason=reason, detail=detail, source_id=row.source_id)
