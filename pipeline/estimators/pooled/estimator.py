"""The pooled estimator: rollouts go where they teach most about a whole chain, and values speak for all of them together.

`choice` decides what to sample, `values` says what has come of it, `learning` learns from the run how values move along chains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from pipeline.config.choices import BudgetUnit
from pipeline.core.records import ChainShape, StepValue, Trials
from pipeline.estimators.base import Budget, Estimator, Need
from pipeline.estimators.pooled import choice, values
from pipeline.estimators.pooled.learning import KernelLearner
from pipeline.estimators.settings import PooledConfig
from pipeline.estimators.tree import Tree


class Pooled(Estimator):
    """See the module."""

    Config = PooledConfig
    needs = frozenset({Need.FREE_ORDER})
    follows_steps = True
    counts_are_shares = True
    learner = KernelLearner()
    settings: PooledConfig

    def next_rollouts(
        self, problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, state: Any
    ) -> list[dict[str, int]]:
        return choice.next_rollouts(problems, trials, rollouts, self.settings, state)

    def values(self, chains: Sequence[ChainShape], trials: Mapping[str, Trials], state: Any) -> list[list[StepValue]]:
        return values.values(chains, trials, self.settings, state)

    def lacks(self) -> Mapping[Need, str]:
        why = (
            "rollouts went where they taught most about a whole chain (estimator.name=pooled), so a prefix on its own has too "
            "few of them, and a number that depends on their outcomes"
        )
        return dict.fromkeys((Need.EVERY_PREFIX, Need.FREE_COUNTS, Need.PROBES), why)

    @property
    def budget(self) -> Budget:
        own = self.settings
        return Budget(target_sd=own.target_sd, chain=own.budget, run=own.run_budget, unit=own.budget_unit)

    def with_budget(self, chain: int | None, unit: BudgetUnit) -> Self:
        return type(self)(replace(self.settings, budget=chain, run_budget=None, budget_unit=unit))
