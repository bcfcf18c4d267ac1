"""The log of a unit of `label`: rollouts, sampled chains and promoted prefixes, and what decisions need of them."""

from collections.abc import Iterable, Mapping, Sequence, Set
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.core.records import (
    InputRow,
    Promotion,
    Rollout,
    RolloutOutcome,
    SampledSolution,
    Tally,
    Totals,
    Trials,
    UnitTarget,
)
from pipeline.core.tables import PROMOTIONS, ROLLOUTS, SOLUTIONS, TOKEN_IDS, rollout_outcomes
from pipeline.data.grown import in_rounds
from pipeline.estimators.base import Learner
from pipeline.estimators.tree import trials_of
from pipeline.runtime.unit_log import LogTable, UnitLog
from pipeline.storage.unit_files import UnitFiles


class RolloutLog(UnitLog):
    """All results of a unit, committed or not.

    `rows`: its input. `state`: the learned state that decisions use, from `learner`; None if the estimator does not learn.
    `settled`: (prefix id, issue index) of the rollouts that the last whole record names.
    """

    def __init__(
        self,
        files: UnitFiles,
        *,
        rows: Sequence[InputRow] = (),
        unit_target: UnitTarget,
        learner: Learner | None = None,
        with_tokens: bool = False,
    ) -> None:
        """`with_tokens`: the log has the tokens of rollouts."""
        table = ROLLOUTS.with_extra(TOKEN_IDS) if with_tokens else ROLLOUTS
        self._rollouts = LogTable(table, keep=attrgetter("outcome"), rows=rollout_outcomes)
        self._solutions = LogTable.whole(SOLUTIONS)
        self._promotions = LogTable.whole(PROMOTIONS)
        super().__init__(files, unit_target, (self._solutions, self._rollouts, self._promotions), _part_tally)
        self.rows = rows
        self._learner = learner
        self.state: Any = None if learner is None else learner.initial()
        self.settled: Set[tuple[str, int]] = frozenset()
        self._of_prefix: dict[str, list[RolloutOutcome]] = {}
        self._trials: dict[str, Trials] = {}

    @property
    def outcomes(self) -> Mapping[str, RolloutOutcome]:
        """The outcomes by rollout id."""
        return self._rollouts.kept

    @property
    def solutions(self) -> Mapping[tuple[str, int], SampledSolution]:
        """The sampled chains by (problem id, draw)."""
        return self._solutions.kept

    @property
    def promotions(self) -> list[Promotion] | None:
        """The promotions, those of earlier rounds first; None in a unit that does not grow."""
        found = in_rounds(self._promotions.kept.values())
        return found if found or self.unit_target.growths else None

    @property
    def growths(self) -> int:
        """The growths that the unit has had as a whole."""
        return self.files.whole.unit_target.growths if self.files.whole is not None else 0

    def _read(self) -> Any:
        super()._read()
        base = self.files.base
        if self._learner is None:
            return None
        return self._learner.from_table(self.files.table(base[0])) if base else self._learner.initial()

    def _take(self, found: Any) -> None:
        self.state = found
        self.settled = {
            (prefix, issue)
            for table in self.files.of_whole(ROLLOUTS.name)
            for prefix, issue in zip(*(table[name].to_pylist() for name in ("prefix_id", "issue_index")), strict=True)
        }
        self._of_prefix, self._trials = {}, {}
        for outcome in self.outcomes.values():
            self._of_prefix.setdefault(outcome.prefix_id, []).append(outcome)

    def add_rollout(self, rollout: Rollout) -> None:
        """Add a finished rollout, unless another process has committed it in the meantime."""
        if (outcome := self._rollouts.add(rollout)) is not None:
            self._of_prefix.setdefault(outcome.prefix_id, []).append(outcome)
            self._trials.pop(outcome.prefix_id, None)

    def add_solution(self, drawn: SampledSolution) -> None:
        """Add a sampled chain, as `add_rollout` does."""
        self._solutions.add(drawn)

    def promote(self, promotions: Iterable[Promotion]) -> None:
        """Add promotions, as `add_rollout` does."""
        for each in promotions:
            self._promotions.add(each)

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


def _part_tally(new: Mapping[str, pa.Table]) -> Tally:
    rollouts = new[ROLLOUTS.name]
    return Totals(rollouts=rollouts.num_rows, tokens=pc.sum(rollouts["n_tokens"]).as_py() or 0).tally
