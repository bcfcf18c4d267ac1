"""Determines all budgets: the target of a unit, its share of the run's budget, and the limit of a problem's chains. Pure.

At first every chain gets the same share of a run's budget, so that the result does not depend on the order of the units. The
next start distributes what easy chains have left over among the chains that still need more.

The cost of a shared prefix is divided among its chains, also if only some of them request its rollouts. So chains that each
stay within their budget may exceed the sum of the budgets together. A `Cap` prevents that.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.config.choices import BudgetUnit
from pipeline.core.records import Totals, Trials, UnitTarget
from pipeline.estimators.base import Budget, Estimator
from pipeline.estimators.tree import NONE, Tree


class FinishedUnit(Protocol):
    """A record that completes a unit: its target and its totals."""

    @property
    def unit_target(self) -> UnitTarget: ...

    @property
    def totals(self) -> Totals: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSpending:
    """What a unit has spent. `chains`: number of its chains. `logged`: counts of its log. `whole`: the record that completes
    it, if there is one."""

    chains: int
    logged: Totals
    whole: FinishedUnit | None


def unit_targets(estimator: Estimator, rollouts: int, units: Mapping[str, UnitSpending]) -> dict[str, UnitTarget]:
    """The target of every unit, by unit id. `rollouts`: the setting `sampling.rollouts`."""
    budget = estimator.budget
    if budget is None or budget.run is None:
        return dict.fromkeys(units, unit_target_of(estimator, rollouts))
    begun = [unit for unit in units.values() if unit.whole is None]
    if begun:
        left = budget.run - sum(_logged(unit, budget) for unit in units.values() if unit.whole is not None)
        share = max(0, left) // max(1, sum(unit.chains for unit in begun))
        return {
            unit_id: unit_target_of(
                estimator, rollouts, share * unit.chains if unit.whole is None else _logged(unit, budget)
            )
            for unit_id, unit in units.items()
        }
    share = _share_of_the_rest(budget, budget.run, list(units.values()))
    return {
        unit_id: unit_target_of(estimator, rollouts, _logged(unit, budget) + share * _waiting(unit, budget))
        for unit_id, unit in units.items()
    }


def unit_target_of(estimator: Estimator, rollouts: int, unit_budget: int | None = None) -> UnitTarget:
    """The target of a unit. `unit_budget`: its share of the run's budget."""
    budget = estimator.budget
    if budget is None:
        return UnitTarget(rollouts=rollouts)
    budgeted = budget.chain is not None or unit_budget is not None
    return UnitTarget(
        rollouts=rollouts,
        target_sd=budget.target_sd,
        budget=budget.chain or 0,
        unit_budget=unit_budget,
        budget_unit=budget.unit.value if budgeted else "",
    )


def meets_target(whole: FinishedUnit, unit_target: UnitTarget) -> bool:
    """Whether the unit needs no more rollouts for its target.

    A larger budget changes nothing if no chain of the unit needs more.
    """
    if whole.unit_target.growths < unit_target.growths:
        return False
    if not unit_target.target_sd:
        return whole.unit_target.rollouts >= unit_target.rollouts
    if whole.unit_target.target_sd > unit_target.target_sd:
        return False
    return not whole.totals.spent or not _more(unit_target, whole)


def _more(unit_target: UnitTarget, whole: FinishedUnit) -> bool:
    """Whether chains may cost more than before. True for budgets in different units, because they cannot be compared."""
    before = whole.unit_target
    if unit_target.budget_unit != before.budget_unit:
        return True
    if not unit_target.budget_unit:
        return unit_target.rollouts > before.rollouts
    spent = _amount(whole.totals, BudgetUnit(unit_target.budget_unit))
    before_of_unit = None if before.unit_budget is None else max(before.unit_budget, spent)
    of_unit = None if unit_target.unit_budget is None else max(unit_target.unit_budget, spent)
    return _wider(unit_target.budget or None, before.budget or None) or _wider(of_unit, before_of_unit)


def _wider(limit: int | None, before: int | None) -> bool:
    return before is not None and (limit is None or limit > before)


def scaled_budget(estimator: Estimator, unit_target: UnitTarget) -> Estimator:
    """The estimator for a unit with this target: with the target's budget instead of that of the settings."""
    budget = estimator.budget
    if budget is None:
        return estimator
    if not unit_target.budget_unit:
        return estimator.with_budget(None, budget.unit)
    return estimator.with_budget(unit_target.budget or None, BudgetUnit(unit_target.budget_unit))


def level_budget(total: float, costs: Sequence[float]) -> int:
    """The limit per chain at which all chains together cost at most `total`. `costs`: what each chain has cost so far.

    A chain that has already cost more than the limit gets nothing more, and leaves less for the others.
    """
    ordered = sorted(costs)
    dearer = [sum(ordered[count:]) for count in range(1, len(ordered) + 1)]
    levels = [(total - rest) / count for count, rest in enumerate(dearer, start=1)]
    return max(0, int(min(levels, default=0.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The limit on the total cost of a problem, in `unit`."""

    most: float
    unit: BudgetUnit


def estimated_costs(tree: Tree, trials: Mapping[str, Trials], unit: BudgetUnit) -> list[float]:
    """The cost of each chain so far. The cost of a shared prefix is divided among its chains."""
    spent = [_cost(trials.get(prefix, NONE), unit) for prefix in tree.prefix_ids]
    return [sum(spent[node] * float(tree.shares[node]) for node in path) for path in tree.paths]


def total_cost(chains: Sequence[float], level: float) -> float:
    """The most that chains may cost together if each may cost up to `level`. `chains`: what each has cost so far."""
    return sum(max(cost, level) for cost in chains)


def within(tree: Tree, trials: Mapping[str, Trials], more: Mapping[str, int], cap: Cap) -> dict[str, int]:
    """The part of the requested rollouts (`more`) that the cap allows, in the order of `more`.

    For a cap in tokens the number is approximate: the cost of a rollout is the mean of the existing rollouts, or the mean price
    of the tree's prefixes if there are none.
    """
    found = [trials[prefix] for prefix in tree.prefix_ids if prefix in trials]
    spent = sum(_cost(each, cap.unit) for each in found)
    issued = sum(len(each.outcomes) for each in found)
    price = spent / issued if issued else float(tree.prices.mean())
    left = math.ceil((cap.most - spent) / (price if cap.unit is BudgetUnit.tokens else 1))
    allowed: dict[str, int] = {}
    for prefix, count in more.items():
        taken = min(count, left)
        if taken > 0:
            allowed[prefix] = taken
            left -= taken
    return allowed


def usual_cap(tree: Tree, rollouts: int, budget: Budget) -> Cap:
    """The limit of a problem from the budget per chain; without such a budget, `rollouts` for each of its open prefixes."""
    if budget.chain is None:
        return Cap(most=rollouts * int((~tree.closed).sum()), unit=BudgetUnit.rollouts)
    return Cap(most=budget.chain * len(tree.chains), unit=budget.unit)


def _cost(have: Trials, unit: BudgetUnit) -> int:
    """The cost of a prefix. A rollout costs at least one token, because engines may return empty completions."""
    issued = len(have.outcomes)
    return max(have.counts.tokens, issued) if unit is BudgetUnit.tokens else issued


def _share_of_the_rest(budget: Budget, run: int, units: Sequence[UnitSpending]) -> int:
    """The additional budget of each chain that is not done; 0 if it is less than one rollout."""
    waiting = sum(_waiting(unit, budget) for unit in units)
    share = max(0, run - sum(_logged(unit, budget) for unit in units)) // max(1, waiting)
    logged = sum((unit.logged for unit in units), Totals())
    tokens = budget.unit is BudgetUnit.tokens
    a_rollout = -(-logged.tokens // logged.rollouts) if tokens and logged.rollouts else 1
    return share if share >= a_rollout else 0


def _waiting(unit: UnitSpending, budget: Budget) -> int:
    """Number of chains of a unit that are not done."""
    if unit.whole is None or unit.whole.unit_target.target_sd > budget.target_sd:
        return unit.chains
    return unit.whole.totals.spent


def _logged(unit: UnitSpending, budget: Budget) -> int:
    return _amount(unit.logged, budget.unit)


def _amount(totals: Totals, unit: BudgetUnit) -> int:
    """The cost of some rollouts in the unit of a budget."""
    return totals.tokens if unit is BudgetUnit.tokens else totals.rollouts
