"""Chains sampled by the policy itself, for problems that come without any."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.config import Keep, LabelConfig
from pipeline.engine.base import Engine
from pipeline.ids import content_id
from pipeline.prompts import cut_on_tokens
from pipeline.records import (
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
from pipeline.run.judge import Judge
from pipeline.steps import split


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What was sampled for one row: every draw, the distinct chains that go on, or why the row does not."""

    row: InputRow
    solutions: Sequence[SampledSolution]
    kept: Sequence[Solution]
    rejects: Sequence[Reject]
    tokens: int


class SolutionDrawer:
    """Samples `sampling.solutions` chains per row. They are no rollouts of the bare problem: with sampling.keep=mixed they
    decide which problems stay, and would bias its value."""

    def __init__(self, config: LabelConfig, engine: Engine, judge: Judge) -> None:
        self._config = config
        self._engine = engine
        self._judge = judge

    async def draw(self, rows: Sequence[InputRow], roots: Mapping[str, Prefix]) -> list[Draw]:
        """One `Draw` per row, sampled all together."""
        requests = [request for row in rows for request in self._requests(row, roots[row.problem.problem_id])]
        completions: dict[str, list[Completion]] = {row.problem.problem_id: [] for row in rows}
        async for batch in self._engine.generate(requests, keep_tokens=True):
            for completion in batch:
                completions[completion.request.problem.problem_id].append(completion)
        return [await self._sorted_out(row, completions[row.problem.problem_id]) for row in rows]

    def _requests(self, row: InputRow, root: Prefix) -> list[Request]:
        return [
            Request(
                request_id=f"{content_id('draw', row.problem.problem_id)}-{draw:05d}",
                issue_index=draw,
                problem=row.problem,
                prefix=root,
            )
            for draw in range(self._config.sampling.solutions)
        ]

    async def _sorted_out(self, row: InputRow, completions: list[Completion]) -> Draw:
        completions.sort(key=lambda completion: completion.request.issue_index)
        solutions = [await self._solution(row, completion) for completion in completions]
        graded = [drawn.grade.verdict for drawn in solutions if drawn.grade.verdict not in UNGRADED]
        right = graded.count(Verdict.CORRECT)
        distinct = {drawn.solution.chain_id: drawn.solution for drawn in solutions if drawn.solution.ends}
        kept, rejects = list(distinct.values()), []
        if not kept:
            detail = f"all {len(solutions)} sampled solutions are empty: check policy.prompt"
            rejects = [_reject(row, RejectReason.NO_STEPS, detail)]
        elif self._config.sampling.keep is Keep.mixed and right in (0, len(graded)):
            kept = []
            detail = f"of {len(graded)} sampled solutions that could be graded {right} are right (sampling.keep=mixed)"
            rejects = [_reject(row, RejectReason.FILTERED, detail)]
        return Draw(
            row=row,
            solutions=solutions,
            kept=kept,
            rejects=rejects,
            tokens=sum(completion.n_tokens for completion in completions),
        )

    async def _solution(self, row: InputRow, completion: Completion) -> SampledSolution:
        data, decode, ids = self._config.data, self._engine.tokenizer.decode, completion.token_ids
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
