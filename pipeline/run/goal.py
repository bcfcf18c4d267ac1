"""What is asked of a unit, and whether a record that completes it has reached that. Pure."""

from dataclasses import replace

from pipeline.choices import BudgetUnit, EstimatorName
from pipeline.config import EstimatorConfig, LabelConfig
from pipeline.records import Goal
from pipeline.store.commits import Commit


def goal_of(config: LabelConfig, budget: int | None = None) -> Goal:
    """What `config` asks of a unit, whose share of the run's budget is `budget` per chain."""
    estimator, rollouts = config.estimator, config.sampling.rollouts
    if estimator.name is not EstimatorName.pooled:
        return Goal(rollouts=rollouts)
    caps = [cap for cap in (estimator.budget, budget) if cap is not None]
    return Goal(
        rollouts=rollouts,
        target_sd=estimator.target_sd,
        budget=min(caps) if caps else 0,
        budget_unit=estimator.budget_unit.value if caps else "",
    )


def towards(goal: Goal, config: EstimatorConfig) -> EstimatorConfig:
    """The estimator's settings as they are for a unit with this goal."""
    if not goal.budget:
        return replace(config, budget=None)
    return replace(config, budget=goal.budget, budget_unit=BudgetUnit(goal.budget_unit))


def reached(whole: Commit, goal: Goal) -> bool:
    """Whether nothing is owed any more.

    Where a unit has no undecided chain, a larger budget adds nothing to it.
    """
    if not goal.target_sd:
        return whole.goal.rollouts >= goal.rollouts
    if whole.goal.target_sd > goal.target_sd:
        return False
    return not whole.totals.undecided or not _more(goal, whole.goal)


def _more(goal: Goal, before: Goal) -> bool:
    """Whether a chain may cost more than before; budgets of different kinds cannot be compared, so then it may."""
    if goal.budget_unit != before.budget_unit:
        return True
    return goal.budget > before.budget if goal.budget else goal.rollouts > before.rollouts
