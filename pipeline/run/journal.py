"""A unit's log while the unit is in work: what is committed, what has come in since, and how the second becomes the first.

Somebody else may write to the same log: a worker that was given up and lives on, a second driver. What is committed stands;
of the own work only that is added which the log does not have.
"""

import asyncio
from collections.abc import Mapping

import pyarrow as pa

from pipeline.failpoints import failpoint
from pipeline.records import Fact, Rollout, SampledSolution, Totals
from pipeline.store.commits import Commit
from pipeline.store.unit_log import UnitLog
from pipeline.tables import facts, rollouts_table, sampled_solutions, solutions_table


class Journal:
    """`facts` by rollout id and `solutions` by (problem id, draw): of all work there is, committed or not."""

    def __init__(self, log: UnitLog, *, grader: str, target: int) -> None:
        self._log = log
        self._grader = grader
        self._target = target
        self._writing = asyncio.Lock()
        self._new_rollouts: dict[str, Rollout] = {}
        self._new_solutions: dict[tuple[str, int], SampledSolution] = {}
        self.facts: dict[str, Fact] = {}
        self.solutions: dict[tuple[str, int], SampledSolution] = {}

    @property
    def done(self) -> Commit | None:
        """The record that completes the unit for as many rollouts per prefix as are asked for, or more."""
        whole = self._log.whole
        return whole if whole is not None and whole.target >= self._target else None

    async def read(self) -> None:
        """Take over what is committed. Raises StoreError."""
        for name, table in await asyncio.to_thread(self._log.read):
            if name == "rollouts":
                standing = facts(table)
                self.facts.update(standing)
                for rollout in standing:
                    self._new_rollouts.pop(rollout, None)
            else:
                for drawn in sampled_solutions(table):
                    key = drawn.solution.problem_id, drawn.draw
                    self.solutions[key] = drawn
                    self._new_solutions.pop(key, None)

    def add_rollout(self, rollout: Rollout) -> None:
        completion = rollout.completion
        self._new_rollouts[completion.request.request_id] = rollout
        self.facts[completion.request.request_id] = Fact(
            prefix_id=completion.request.prefix.prefix_id,
            finish=completion.finish,
            n_tokens=completion.n_tokens,
            verdict=rollout.grade.verdict,
        )

    def add_solution(self, drawn: SampledSolution) -> None:
        key = drawn.solution.problem_id, drawn.draw
        self._new_solutions[key] = self.solutions[key] = drawn

    async def flush(self) -> None:
        """Commit what has come in. Raises StoreError. Who is cancelled here leaves the commit to end by itself, as the thread
        that writes does not stop: what it commits must count as committed."""
        await asyncio.shield(self._flush())

    async def _flush(self) -> None:
        async with self._writing:
            while not self.done and (self._new_rollouts or self._new_solutions):
                failpoint("worker.flush")
                rollouts, solutions = dict(self._new_rollouts), dict(self._new_solutions)
                if await asyncio.to_thread(self._append, rollouts, solutions):
                    for rollout in rollouts:
                        del self._new_rollouts[rollout]
                    for drawn in solutions:
                        del self._new_solutions[drawn]
                    return
                await self.read()

    async def complete(self, results: Mapping[str, pa.Table], totals: Totals, seconds: float) -> bool:
        """Commit the unit as whole. False when the log has grown meanwhile and was read again: the results are then stale."""
        async with self._writing:
            failpoint("worker.complete")
            last = self._tables(self._new_rollouts, self._new_solutions)
            won = await asyncio.to_thread(self._log.complete, last, results, totals, self._target, seconds)
            if not won:
                await self.read()
            return won

    def _append(self, rollouts: Mapping[str, Rollout], solutions: Mapping[tuple[str, int], SampledSolution]) -> bool:
        tokens = sum(rollout.completion.n_tokens for rollout in rollouts.values())
        return self._log.append(self._tables(rollouts, solutions), Totals(rollouts=len(rollouts), tokens=tokens))

    def _tables(
        self, rollouts: Mapping[str, Rollout], solutions: Mapping[tuple[str, int], SampledSolution]
    ) -> dict[str, pa.Table]:
        return {
            "solutions": solutions_table(list(solutions.values())),
            "rollouts": rollouts_table(list(rollouts.values()), self._grader),
        }
