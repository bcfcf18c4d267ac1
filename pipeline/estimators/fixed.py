"""The fixed estimator: N rollouts for every prefix, value c/n over the graded ones (Math-Shepherd's soft estimate).

Unbiased for P(correct | prefix) as long as whether a rollout can be graded does not depend on whether it is right.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.config.choices import ValueColumn
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, Counts, Origin, StepValue, Trials
from pipeline.estimators.base import Estimator, Need, RolloutRange
from pipeline.estimators.intervals import above, beta_moments, interval
from pipeline.estimators.labels import with_advantages
from pipeline.estimators.settings import FixedConfig
from pipeline.estimators.tree import NONE, Tree, measured_prefixes


class Fixed(Estimator):
    """See the module."""

    Config = FixedConfig
    value_column = ValueColumn.value
    needs = frozenset({Need.EVERY_PREFIX, Need.FREE_COUNTS})
    one_round = True
    replayable = True
    counts_are_shares = True

    def next_rollouts(
        self, problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, state: Any
    ) -> list[dict[str, int]]:
        return per_prefix(problems, trials, lambda have: rollouts_owed(have, rollouts))

    def values(self, chains: Sequence[ChainShape], trials: Mapping[str, Trials], state: Any) -> list[list[StepValue]]:
        return [
            chain_step_values(chain, trials, lambda have: measured_value(have.counts, self.settings), self.settings)
            for chain in chains
        ]

    def planned(self, rollouts: int) -> RolloutRange:
        return RolloutRange(least=rollouts, most=rollouts)

    def lacks(self) -> Mapping[Need, str]:
        return {}


def per_prefix(
    problems: Sequence[Tree], trials: Mapping[str, Trials], owed: Callable[[Trials], int]
) -> list[dict[str, int]]:
    """What every prefix that can be sampled is owed, each by its own rollouts alone."""
    return [
        {
            prefix: more
            for prefix, closed in zip(tree.prefix_ids, tree.closed, strict=True)
            if not closed and (more := owed(trials.get(prefix, NONE)))
        }
        for tree in problems
    ]


def chain_step_values(
    chain: ChainShape, trials: Mapping[str, Trials], value: Callable[[Trials], StepValue], config: EstimatorConfig
) -> list[StepValue]:
    """The K + 1 values of a chain, of each prefix by its own rollouts alone, and advantages from one to the next."""
    values = [value(trials.get(prefix, NONE)) for prefix in measured_prefixes(chain)]
    end = [] if chain.outcome is None else [terminal_value(chain.outcome, config.threshold)]
    return with_advantages([*values, *end])


def rollouts_owed(trials: Trials, rollouts: int) -> int:
    """How many more rollouts a prefix needs."""
    return max(0, rollouts - len(trials.outcomes))


def measured_value(counts: Counts, config: EstimatorConfig) -> StepValue:
    """Value, interval and posterior of a sampled prefix.

    The posterior is Beta(c + 1/2, n - c + 1/2), from Jeffreys' prior and this prefix alone. With nothing graded there is
    no value: all estimates are None and the origin is `unmeasured_value`.
    """
    correct, graded = counts.correct, counts.graded
    if graded == 0:
        return unmeasured_value(counts)
    low, high = interval(correct, graded, config)
    mean, sd = beta_moments(correct, graded)
    return StepValue(
        value=correct / graded,
        value_rollouts=graded,
        low=low,
        high=high,
        posterior_mean=mean,
        posterior_sd=sd,
        above=above(correct, graded, config.threshold),
        origin=Origin.MEASURED,
        counts=counts,
    )


def unmeasured_value(counts: Counts) -> StepValue:
    """A prefix of which nothing is known."""
    return StepValue(
        value=None,
        value_rollouts=0,
        low=None,
        high=None,
        posterior_mean=None,
        posterior_sd=None,
        above=None,
        origin=Origin.UNMEASURED,
        counts=counts,
    )


def terminal_value(outcome: bool, threshold: float) -> StepValue:
    """The full chain: its value is its own outcome, known without a rollout."""
    value = float(outcome)
    return StepValue(
        value=value,
        value_rollouts=0,
        low=value,
        high=value,
        posterior_mean=value,
        posterior_sd=0.0,
        above=float(value > threshold),
        origin=Origin.TERMINAL,
        counts=Counts(),
    )
