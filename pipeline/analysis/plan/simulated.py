"""What estimators would ask for, on chains whose values are believed to be so and so: pure but for the generator it is given.

Rollouts are drawn as successes of that chance; that some reproduce steps of the chain, from which an estimator may learn a
little more, is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pipeline.core.records import Counts, Trials
from pipeline.estimators.base import Estimator
from pipeline.estimators.tree import Tree
from pipeline.estimators.trials import NONE
from pipeline.runtime.budgets import usual_cap, within

_MOST_SPREAD = 0.99
"""Of the largest sd that a chance of a given mean can have: there a Beta distribution has its mass at 0 and 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Believed:
    """Of a prefix: its value and how sure it is (mean and sd), and the tokens of a rollout."""

    mean: float
    sd: float
    tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    rollouts: int
    tokens: float


NOTHING = Spent(rollouts=0, tokens=0.0)


def simulated(
    trees: Sequence[Tree],
    believed: Mapping[str, Believed],
    *,
    rollouts: int,
    estimator: Estimator,
    state: Any,
    rng: np.random.Generator,
) -> list[Spent]:
    """What each problem costs, in the order of `trees`. `believed` knows all their prefixes, `rollouts` is the
    setting, and `state` what the estimator has learnt before."""
    values = {prefix: _drawn(believed[prefix], rng) for tree in trees for prefix in tree.prefix_ids}
    trials: dict[str, Trials] = {}
    active = list(trees)
    while active:
        asked = estimator.next_rollouts(active, trials, rollouts, state)
        if (budget := estimator.budget) is not None:
            asked = [
                within(tree, trials, more, usual_cap(tree, rollouts, budget))
                for tree, more in zip(active, asked, strict=True)
            ]
        for more in asked:
            for prefix, count in more.items():
                right = rng.random(count) < values[prefix]
                trials[prefix] = _extended(trials.get(prefix, NONE), right.tolist(), believed[prefix].tokens)
        active = [tree for tree, more in zip(active, asked, strict=True) if more]
    return [_spent(tree, trials, believed) for tree in trees]


def _drawn(known: Believed, rng: np.random.Generator) -> float:
    """A value from the Beta distribution of that mean and sd."""
    most = known.mean * (1 - known.mean)
    variance = min(known.sd, _MOST_SPREAD * most**0.5) ** 2
    if variance <= 0:
        return known.mean
    weight = most / variance - 1
    right, wrong = known.mean * weight, (1 - known.mean) * weight
    # A mean as small as numbers get leaves nothing of its part.
    return float(rng.beta(right, wrong)) if right > 0 and wrong > 0 else known.mean


def _extended(before: Trials, right: Sequence[bool], tokens: float) -> Trials:
    outcomes = (*before.outcomes, *right)
    return replace(
        before,
        outcomes=outcomes,
        rounds=(*before.rounds, len(right)),
        reached=(None,) * len(outcomes),
        counts=Counts(correct=outcomes.count(True), graded=len(outcomes), tokens=round(tokens * len(outcomes))),
    )


def _spent(tree: Tree, trials: Mapping[str, Trials], believed: Mapping[str, Believed]) -> Spent:
    issued = {prefix: len(trials.get(prefix, NONE).outcomes) for prefix in tree.prefix_ids}
    return Spent(
        rollouts=sum(issued.values()), tokens=sum(count * believed[prefix].tokens for prefix, count in issued.items())
    )
