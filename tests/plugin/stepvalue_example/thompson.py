"""Thompson sampling of prefixes: each rollout goes to the prefix of a chain that a draw from its posterior finds most open.

A value is drawn from each prefix's Beta posterior, and the prefix whose value lies nearest to one half gets the next rollout
(Thompson 1933). A problem may take as many rollouts as `estimator=fixed` would. The prior is learned from unit to unit.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any

import pyarrow as pa
from annotated_types import Gt, Interval
from scipy.special import betaincc, betaincinv

from pipeline.config.fields import FREE, RELABEL
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, Counts, Origin, StepValue, Trials
from pipeline.core.schemas import SCHEMAS
from pipeline.estimators.base import Estimator
from pipeline.estimators.fixed import chain_step_values, unmeasured_value
from pipeline.estimators.tree import Tree


@dataclass(kw_only=True, slots=True)
class ThompsonConfig(EstimatorConfig):
    name: Annotated[str, RELABEL] = "thompson"
    prior_weight: Annotated[float, Gt(0), RELABEL] = 2.0
    """The prior counts as much as this number of rollouts."""
    at_a_time: Annotated[int, Interval(ge=1, le=100), FREE] = 4
    """Rollouts of a problem that are asked for together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    values: Mapping[str, int] = field(default_factory=lambda: {"correct": 1, "graded": 2})
    chains: int = 0


class RateLearner:
    """Learns the share of right rollouts over all prefixes, which is the mean of the prior."""

    table, version = "states", 1

    def initial(self) -> Rate:
        return Rate()

    def learn(self, known: Rate, trees: Sequence[Tree], trials: Mapping[str, Trials]) -> Rate:
        found = [trials[prefix].counts for tree in trees for prefix in tree.prefix_ids if prefix in trials]
        values = {
            "correct": known.values["correct"] + sum(counts.correct for counts in found),
            "graded": known.values["graded"] + sum(counts.graded for counts in found),
        }
        return Rate(values=values, chains=known.chains + sum(len(tree.chains) for tree in trees))

    def familiar(self, known: Rate) -> Rate:
        return known

    def to_table(self, known: Rate) -> pa.Table:
        row = {"estimator": "thompson", "version": self.version, "chains": known.chains}
        return pa.Table.from_pylist([row | {"state": json.dumps(dict(known.values))}], schema=SCHEMAS[self.table])

    def from_table(self, table: pa.Table) -> Rate:
        row = table.to_pylist()[0]
        if (row["estimator"], row["version"]) != ("thompson", self.version):
            raise ValueError(f"the state was learned by {row['estimator']}, version {row['version']}")
        return Rate(values=json.loads(row["state"]), chains=row["chains"])


class Thompson(Estimator):
    Config = ThompsonConfig
    settings: ThompsonConfig
    learner = RateLearner()

    def next_rollouts(
        self, problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, state: Any
    ) -> list[dict[str, int]]:
        return [self._next(tree, trials, rollouts, state) for tree in problems]

    def values(self, chains: Sequence[ChainShape], trials: Mapping[str, Trials], state: Any) -> list[list[StepValue]]:
        return [
            chain_step_values(chain, trials, lambda have: self._value(have.counts, state), self.settings)
            for chain in chains
        ]

    def _next(self, tree: Tree, trials: Mapping[str, Trials], rollouts: int, state: Any) -> dict[str, int]:
        free = [prefix for prefix, closed in zip(tree.prefix_ids, tree.closed, strict=True) if not closed]
        issued = sum(len(trials[prefix].outcomes) for prefix in free if prefix in trials)
        left = min(self.settings.at_a_time, rollouts * len(free) - issued)
        # A decision depends on the problem's own log alone: so does its randomness.
        random = Random(f"{tree.prefix_ids[0]} {issued}")
        more: dict[str, int] = {}
        for _ in range(max(0, left)):
            drawn = {prefix: random.betavariate(*self._posterior(_counts(trials, prefix), state)) for prefix in free}
            open_one = min(free, key=lambda prefix: abs(drawn[prefix] - 0.5))
            more[open_one] = more.get(open_one, 0) + 1
        return more

    def _posterior(self, counts: Counts, state: Any) -> tuple[float, float]:
        mean = state.values["correct"] / state.values["graded"]
        weight = self.settings.prior_weight
        return counts.correct + weight * mean, counts.graded - counts.correct + weight * (1 - mean)

    def _value(self, counts: Counts, state: Any) -> StepValue:
        if not counts.graded:
            return unmeasured_value(counts)
        a, b = self._posterior(counts, state)
        tail = (1 - self.settings.confidence) / 2
        return StepValue(
            value=a / (a + b),
            value_sd=math.sqrt(a * b / ((a + b) ** 2 * (a + b + 1))),
            low=float(betaincinv(a, b, tail)),
            high=float(betaincinv(a, b, 1 - tail)),
            p_above=float(betaincc(a, b, self.settings.threshold)),
            origin=Origin.MEASURED,
            counts=counts,
        )


def _counts(trials: Mapping[str, Trials], prefix: str) -> Counts:
    return trials[prefix].counts if prefix in trials else Counts()
