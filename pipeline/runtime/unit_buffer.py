"""A unit's log while a worker labels the unit: the committed results, and the new results that are not yet committed.

Other processes may write to the same log: a worker that the driver has given up but that still runs, or a second driver.
Committed results are final. The buffer only adds results that the log does not contain.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline.core.failpoints import failpoint
from pipeline.core.records import (
    Promotion,
    Rollout,
    RolloutOutcome,
    SampledSolution,
    Totals,
    Trials,
    UnitTarget,
)
from pipeline.core.tables import PROMOTIONS, ROLLOUTS, SOLUTIONS, TOKEN_IDS, rollout_outcomes
from pipeline.data.grown import in_rounds
from pipeline.estimators.base import Learner
from pipeline.estimators.tree import trials_of
from pipeline.runtime.flushes import Uninterrupted
from pipeline.runtime.problem_budget import meets_target
from pipeline.storage.commits import Commit
from pipeline.storage.unit_log import UnitLog


class UnitBuffer:
    """All results of a unit, committed or not: `outcomes` (outcomes by rollout id), `solutions` by (problem id, draw),
    and the `promotions` of prefixes, those of earlier rounds first; None in a unit that does not grow.

    `readings` counts how often the log was read; results computed before the last reading may be stale. `state`: the learned
    state that decisions use, from `learner`; None if the estimator does not learn. `settled`: (prefix id, issue index) of the
    rollouts that the last whole record names.
    """

    def __init__(
        self,
        log: UnitLog,
        *,
        unit_target: UnitTarget,
        learner: Learner | None = None,
        with_tokens: bool = False,
    ) -> None:
        """`with_tokens`: the log has the tokens of rollouts."""
        self._log = log
        self._rollouts = ROLLOUTS.with_extra(TOKEN_IDS) if with_tokens else ROLLOUTS
        self._learner = learner
        self.unit_target = unit_target
        self._writing = asyncio.Lock()
        self._uninterrupted = Uninterrupted()
        self._new_rollouts: dict[str, Rollout] = {}
        self._new_solutions: dict[tuple[str, int], SampledSolution] = {}
        self._new_promotions: dict[str, Promotion] = {}
        self._promotions: dict[str, Promotion] = {}
        self.readings = 0
        self.outcomes: dict[str, RolloutOutcome] = {}
        self.solutions: dict[tuple[str, int], SampledSolution] = {}
        self.state: Any = None if learner is None else learner.initial()
        self.settled: Set[tuple[str, int]] = frozenset()
        self._of_prefix: dict[str, list[RolloutOutcome]] = {}
        self._trials: dict[str, Trials] = {}

    @property
    def promotions(self) -> list[Promotion] | None:
        found = in_rounds(self._promotions.values())
        return found if found or self.unit_target.growths else None

    @property
    def growths(self) -> int:
        """The growths that the unit has had as a whole."""
        return self._log.whole.unit_target.growths if self._log.whole is not None else 0

    @property
    def unit_id(self) -> str:
        return self._log.unit_id

    @property
    def done(self) -> Commit | None:
        """The record that completes the unit for its target or a larger one; None if there is no such record."""
        whole = self._log.whole
        return whole if whole is not None and meets_target(whole, self.unit_target) else None

    async def read(self) -> None:
        """Read the log, and keep only those new results that are not committed by now. Raises StoreError."""
        tables, state = await asyncio.to_thread(self._read)
        logged = {
            key: outcome
            for name, table in tables
            if name == "rollouts"
            for key, outcome in rollout_outcomes(table).items()
        }
        drawn = [each for name, table in tables if name == "solutions" for each in SOLUTIONS.from_table(table)]
        promoted = [each for name, table in tables if name == "promotions" for each in PROMOTIONS.from_table(table)]
        promotions = {each.chain_id: each for each in promoted}
        solutions = {(each.problem_id, each.draw): each for each in drawn}
        self._new_rollouts = {key: rollout for key, rollout in self._new_rollouts.items() if key not in logged}
        self._new_solutions = {key: each for key, each in self._new_solutions.items() if key not in solutions}
        self._new_promotions = {key: each for key, each in self._new_promotions.items() if key not in promotions}
        self.outcomes = {key: rollout.outcome for key, rollout in self._new_rollouts.items()} | logged
        self.solutions = self._new_solutions | solutions
        self._promotions = self._new_promotions | promotions
        self.state = state
        self.settled = {
            (prefix, issue)
            for table in self._log.of_whole("rollouts")
            for prefix, issue in zip(*(table[name].to_pylist() for name in ("prefix_id", "issue_index")), strict=True)
        }
        self._of_prefix, self._trials = {}, {}
        for outcome in self.outcomes.values():
            self._of_prefix.setdefault(outcome.prefix_id, []).append(outcome)
        self.readings += 1

    def _read(self) -> tuple[list[tuple[str, pa.Table]], Any]:
        tables = self._log.read()
        base = self._log.base
        if self._learner is None:
            return tables, None
        return tables, self._learner.from_table(self._log.table(base[0])) if base else self._learner.initial()

    def add_rollout(self, rollout: Rollout) -> None:
        """Add a finished rollout, unless another process has committed it in the meantime."""
        key = rollout.rollout_id
        if key not in self.outcomes:
            outcome = rollout.outcome
            self._new_rollouts[key] = rollout
            self.outcomes[key] = outcome
            self._of_prefix.setdefault(outcome.prefix_id, []).append(outcome)
            self._trials.pop(outcome.prefix_id, None)

    def of_prefix(self, prefix_id: str) -> Sequence[RolloutOutcome]:
        """The outcomes of a prefix's rollouts, in any order."""
        return self._of_prefix.get(prefix_id, ())

    def trials(self, prefix_ids: Iterable[str]) -> dict[str, Trials]:
        """The trials by prefix id, for the prefixes that have rollouts."""
        wanted = [prefix for prefix in prefix_ids if prefix in self._of_prefix]
        for prefix in wanted:
            if prefix not in self._trials:
                self._trials |= trials_of(self._of_prefix[prefix])
        return {prefix: self._trials[prefix] for prefix in wanted}

    def add_solution(self, drawn: SampledSolution) -> None:
        """Add a sampled chain, as `add_rollout` does."""
        key = drawn.problem_id, drawn.draw
        if key not in self.solutions:
            self._new_solutions[key] = self.solutions[key] = drawn

    def promote(self, promotions: Iterable[Promotion]) -> None:
        """Add promotions, as `add_rollout` does."""
        for each in promotions:
            if each.chain_id not in self._promotions:
                self._new_promotions[each.chain_id] = self._promotions[each.chain_id] = each

    def rollout_tables(self) -> list[pa.Table]:
        """The committed rollouts, each once."""
        return self._log.rows("rollouts")

    async def flush(self) -> None:
        """Commit the new results. Raises StoreError."""
        await self._uninterrupted.run(self._flush())

    async def _flush(self) -> None:
        async with self._writing:
            while not self.done and (new := self._new()):
                failpoint("worker.flush")
                if await asyncio.to_thread(self._append, new):
                    for rollout in new.rollouts:
                        del self._new_rollouts[rollout]
                    for drawn in new.solutions:
                        del self._new_solutions[drawn]
                    for promoted in new.promotions:
                        del self._new_promotions[promoted]
                    return
                await self.read()

    async def complete(
        self, results: Mapping[str, pa.Table], totals: Totals, *, readings: int, learned_from: int = 0
    ) -> bool:
        """Commit the unit as whole, with `results` that were computed when the log had been read `readings` times.

        `learned_from`: see `Commit`. Returns False if the results are stale: the log has been read since, or another process
        has added to it. In the second case the log is read now.
        """
        return await self._uninterrupted.run(self._complete(results, totals, readings, learned_from))

    async def _complete(
        self, results: Mapping[str, pa.Table], totals: Totals, readings: int, learned_from: int
    ) -> bool:
        async with self._writing:
            if readings != self.readings:
                return False
            failpoint("worker.complete")
            last = self._tables(self._new())
            won = await asyncio.to_thread(self._log.complete, last, results, totals, self.unit_target, learned_from)
            if not won:
                await self.read()
            return won

    def _new(self) -> "_Results":
        """The results that are not committed yet. False if there are none."""
        return _Results(dict(self._new_rollouts), dict(self._new_solutions), dict(self._new_promotions))

    def _append(self, new: "_Results") -> bool:
        tokens = sum(rollout.n_tokens for rollout in new.rollouts.values())
        return self._log.append(self._tables(new), Totals(rollouts=len(new.rollouts), tokens=tokens))

    def _tables(self, new: "_Results") -> dict[str, pa.Table]:
        return {
            "solutions": SOLUTIONS.to_table(list(new.solutions.values())),
            "rollouts": self._rollouts.to_table(list(new.rollouts.values())),
            "promotions": PROMOTIONS.to_table(list(new.promotions.values())),
        }


@dataclass(frozen=True, slots=True)
class _Results:
    """New results by their keys."""

    rollouts: Mapping[str, Rollout]
    solutions: Mapping[tuple[str, int], SampledSolution]
    promotions: Mapping[str, Promotion]

    def __bool__(self) -> bool:
        return bool(self.rollouts or self.solutions or self.promotions)
