"""What the chains of a problem may cost together, and what of a decision is within that. Pure.

A chain bears its share of a prefix that it has in common with others, also where only these ask for it. So chains that keep to
their budgets one by one may cost more together; here they do not.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.config.choices import BudgetUnit
from pipeline.core.records import Trials
from pipeline.estimators.tree import Tree
from pipeline.estimators.trials import NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """What a problem may cost in all, in `unit`."""

    most: float
    unit: BudgetUnit


def costs(tree: Tree, trials: Mapping[str, Trials], unit: BudgetUnit) -> list[float]:
    """What each chain has cost; of shared prefixes its share."""
    spent = [_cost(trials.get(prefix, NONE), unit) for prefix in tree.prefix_ids]
    return [sum(spent[node] * float(tree.shares[node]) for node in path) for path in tree.paths]


def together(chains: Sequence[float], level: float) -> float:
    """What chains that have cost so much may cost together, each up to a level."""
    return sum(max(cost, level) for cost in chains)


def within(tree: Tree, trials: Mapping[str, Trials], more: Mapping[str, int], cap: Cap) -> dict[str, int]:
    """As many of the rollouts as the cap allows, those of prefixes that come first; of tokens, about as many: what a rollout
    takes is told by those there are, and before by its price."""
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


def _cost(have: Trials, unit: BudgetUnit) -> int:
    """A rollout costs a token at least: engines may give back nothing at all."""
    issued = len(have.outcomes)
    return max(have.counts.tokens, issued) if unit is BudgetUnit.tokens else issued
