"""What each unit may spend: shares of what is left of the run's budget, decided when a start begins. Pure.

Every chain that is not done gets the same, so that it does not matter who works on which unit, and when. What easy chains leave
over, the next start shares out among the chains that are still undecided.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.choices import BudgetUnit, EstimatorName
from pipeline.config import LabelConfig
from pipeline.records import Goal, Totals
from pipeline.run.goal import goal_of
from pipeline.store.commits import Commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A unit of so many `chains`: what its log holds, and the record that completes it, if it is whole."""

    chains: int
    logged: Totals
    whole: Commit | None


def goals(config: LabelConfig, units: Mapping[str, Spent]) -> dict[str, Goal]:
    """What is asked of every unit, by unit id."""
    estimator = config.estimator
    if estimator.run_budget is None or estimator.name is not EstimatorName.pooled:
        return dict.fromkeys(units, goal_of(config))
    tokens = estimator.budget_unit is BudgetUnit.tokens
    logged = sum((unit.logged for unit in units.values()), Totals())
    left = max(0, estimator.run_budget - _amount(logged, tokens=tokens))
    waiting = sum(_waiting(unit, estimator.target_sd) for unit in units.values())
    share = left // waiting if waiting else 0
    a_rollout = -(-logged.tokens // logged.rollouts) if tokens and logged.rollouts else 1
    return {
        unit_id: goal_of(config, _budget(unit, share if share >= a_rollout else 0, tokens=tokens))
        for unit_id, unit in units.items()
    }


def _waiting(unit: Spent, target_sd: float) -> int:
    """How many chains of a unit are not done."""
    if unit.whole is None or unit.whole.goal.target_sd > target_sd:
        return unit.chains
    return unit.whole.totals.undecided


def _budget(unit: Spent, share: int, *, tokens: bool) -> int:
    """What each chain of a unit may cost in all."""
    if unit.whole is not None and unit.whole.goal.budget:
        return unit.whole.goal.budget + share
    return max(1, _amount(unit.logged, tokens=tokens) // max(1, unit.chains) + share)


def _amount(totals: Totals, *, tokens: bool) -> int:
    return totals.tokens if tokens else totals.rollouts
