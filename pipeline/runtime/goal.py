"""What is asked of a unit, and whether a record that completes it has reached that. Pure."""

from pipeline.config.choices import BudgetUnit, EstimatorName
from pipeline.config.label import LabelConfig
from pipeline.core.records import Goal, Totals
from pipeline.storage.commits import Commit


def goal_of(config: LabelConfig, unit_budget: int | None = None) -> Goal:
    """What `config` asks of a unit, whose share of the run's budget is `unit_budget`."""
    estimator, rollouts = config.estimator, config.sampling.rollouts
    if estimator.name is not EstimatorName.pooled:
        return Goal(rollouts=rollouts)
    budgeted = estimator.budget is not None or unit_budget is not None
    return Goal(
        rollouts=rollouts,
        target_sd=estimator.target_sd,
        budget=estimator.budget or 0,
        unit_budget=unit_budget,
        budget_unit=estimator.budget_unit.value if budgeted else "",
    )


def amount(totals: Totals, unit: BudgetUnit) -> int:
    """What of a budget some rollouts have cost."""
    return totals.tokens if unit is BudgetUnit.tokens else totals.rollouts


def reached(whole: Commit, goal: Goal) -> bool:
    """Whether nothing is owed any more.

    Where a unit has no undecided chain, a larger budget adds nothing to it.
    """
    if not goal.target_sd:
        return whole.goal.rollouts >= goal.rollouts
    if whole.goal.target_sd > goal.target_sd:
        return False
    return not whole.totals.undecided or not _more(goal, whole)


def _more(goal: Goal, whole: Commit) -> bool:
    """Whether chains may cost more than before; budgets of different kinds cannot be compared, so then they may."""
    before = whole.goal
    if goal.budget_unit != before.budget_unit:
        return True
    if not goal.budget_unit:
        return goal.rollouts > before.rollouts
    spent = amount(whole.totals, BudgetUnit(goal.budget_unit))
    before_of_unit = None if before.unit_budget is None else max(before.unit_budget, spent)
    of_unit = None if goal.unit_budget is None else max(goal.unit_budget, spent)
    return _wider(goal.budget or None, before.budget or None) or _wider(of_unit, before_of_unit)


def _wider(limit: int | None, before: int | None) -> bool:
    return before is not None and (limit is None or limit > before)
