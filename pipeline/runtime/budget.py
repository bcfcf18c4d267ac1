"""What each unit may spend of the run's budget, decided when a start begins; and what that leaves each of its chains. Pure.

At first every chain gets the same, so that it does not matter who works on which unit, and when. What easy chains leave over,
the next start shares out among the chains that are still undecided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.config.choices import BudgetUnit, EstimatorName
from pipeline.config.label import EstimatorConfig, LabelConfig
from pipeline.core.records import Goal, Totals
from pipeline.runtime.goal import amount, goal_of
from pipeline.storage.commits import Commit


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
    begun = [unit for unit in units.values() if unit.whole is None]
    if begun:
        left = estimator.run_budget - sum(_logged(unit, estimator) for unit in units.values() if unit.whole is not None)
        share = max(0, left) // max(1, sum(unit.chains for unit in begun))
        return {
            unit_id: goal_of(config, share * unit.chains if unit.whole is None else _logged(unit, estimator))
            for unit_id, unit in units.items()
        }
    share = _share_of_the_rest(estimator, list(units.values()))
    return {
        unit_id: goal_of(config, _logged(unit, estimator) + share * _waiting(unit, estimator))
        for unit_id, unit in units.items()
    }


def level(total: float, costs: Sequence[float]) -> int:
    """What each of some chains may cost in all, so that together they cost at most `total`; they have cost `costs` so far.

    A chain that has cost more may cost nothing more, and leaves the others less.
    """
    ordered = sorted(costs)
    dearer = [sum(ordered[count:]) for count in range(1, len(ordered) + 1)]
    levels = [(total - rest) / count for count, rest in enumerate(dearer, start=1)]
    return max(0, int(min(levels, default=0.0)))


def _share_of_the_rest(estimator: EstimatorConfig, units: Sequence[Spent]) -> int:
    """What each waiting chain may cost more; less than a rollout is nothing."""
    assert estimator.run_budget is not None
    waiting = sum(_waiting(unit, estimator) for unit in units)
    share = max(0, estimator.run_budget - sum(_logged(unit, estimator) for unit in units)) // max(1, waiting)
    logged = sum((unit.logged for unit in units), Totals())
    tokens = estimator.budget_unit is BudgetUnit.tokens
    a_rollout = -(-logged.tokens // logged.rollouts) if tokens and logged.rollouts else 1
    return share if share >= a_rollout else 0


def _waiting(unit: Spent, estimator: EstimatorConfig) -> int:
    """How many chains of a unit are not done."""
    if unit.whole is None or unit.whole.goal.target_sd > estimator.target_sd:
        return unit.chains
    return unit.whole.totals.undecided


def _logged(unit: Spent, estimator: EstimatorConfig) -> int:
    return amount(unit.logged, estimator.budget_unit)
