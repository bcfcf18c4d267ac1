"""The fixed estimator: N rollouts for every prefix, value correct / graded (Math-Shepherd's soft estimate).

It is unbiased for P(correct | prefix) if whether a rollout can be graded does not depend on whether it is correct.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, Counts, Origin, StepValue, Trials
from pipeline.estimators.base import Estimator, Need, RolloutRange
from pipeline.estimators.intervals import above, beta_moments, interval, true_share
from pipeline.estimators.labels import with_advantages
from pipeline.estimators.lasting_drop import independent_no_drop, with_drops
from pipeline.estimators.settings import FixedConfig
from pipeline.estimators.tree import NONE, Tree, measured_prefixes


class Fixed(Estimator):
    """See the module."""

    Config = FixedConfig
    needs = frozenset({Need.EVERY_PREFIX, Need.FREE_COUNTS})
    one_round = True
    replayable = True
    counts_are_shares = True
    value_is_share = True

    def next_rollouts(
        self, problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, state: Any
    ) -> list[dict[str, int]]:
        return per_prefix(problems, trials, lambda have: rollouts_owed(have, rollouts))

    def values(self, chains: Sequence[ChainShape], trials: Mapping[str, Trials], state: Any) -> list[list[StepValue]]:
        found = [
            chain_step_values(chain, trials, lambda have: measured_value(have.counts, self.settings), self.settings)
            for chain in chains
        ]
        return [with_drops(values, independent_no_drop(values)) for values in found]

    def rollout_range(self, rollouts: int) -> RolloutRange:
        return RolloutRange(least=rollouts, most=rollouts)

    def lacks(self) -> Mapping[Need, str]:
        return {}


def per_prefix(
    problems: Sequence[Tree], trials: Mapping[str, Trials], further: Callable[[Trials], int]
) -> list[dict[str, int]]:
    """The further rollouts of every prefix that can be sampled, each computed from its own trials alone."""
    return [
        {
            prefix: more
            for prefix, closed in zip(tree.prefix_ids, tree.closed, strict=True)
            if not closed and (more := further(trials.get(prefix, NONE)))
        }
        for tree in problems
    ]


def chain_step_values(
    chain: ChainShape, trials: Mapping[str, Trials], value: Callable[[Trials], StepValue], config: EstimatorConfig
) -> list[StepValue]:
    """The K + 1 values of a chain, each from its prefix's own rollouts, with the advantages between neighbours."""
    values = [value(trials.get(prefix, NONE)) for prefix in measured_prefixes(chain)]
    end = [] if chain.outcome is None else [terminal_value(chain.outcome, config.threshold)]
    return with_advantages([*values, *end])


def rollouts_owed(trials: Trials, rollouts: int) -> int:
    """The number of further rollouts that a prefix needs."""
    return max(0, rollouts - len(trials.outcomes))


def measured_value(counts: Counts, config: EstimatorConfig) -> StepValue:
    """The value correct / graded of a sampled prefix, over 1 - miss_rate and at most 1, for a number of rollouts that does not
    depend on their outcomes.

    `value_sd` and `p_above` are those of the posterior Beta(c + 1/2, n - c + 1/2), from Jeffreys' prior and this prefix's
    rollouts alone. Without graded rollouts all estimates are None and the origin is `unmeasured`.
    """
    correct, graded = counts.correct, counts.graded
    if graded == 0:
        return unmeasured_value(counts)
    low, high = interval(correct, graded, config)
    share = true_share(correct / graded, config)
    return StepValue(
        value=min(1.0, share),
        value_sd=beta_moments(correct, graded, config.miss_rate)[1],
        low=low,
        high=high,
        p_above=above(correct, graded, config.threshold, config.miss_rate),
        unbiased_value=share,
        unbiased_rollouts=graded,
        origin=Origin.MEASURED,
        counts=counts,
    )


def posterior_value(counts: Counts, config: EstimatorConfig) -> StepValue:
    """The same with the posterior mean as value and without an unbiased value, for a number of rollouts that depends on their
    outcomes: correct / graded is biased then, but a posterior does not depend on when sampling stopped."""
    if counts.graded == 0:
        return unmeasured_value(counts)
    mean, _ = beta_moments(counts.correct, counts.graded, config.miss_rate)
    return replace(measured_value(counts, config), value=mean, unbiased_value=None, unbiased_rollouts=0)


def unmeasured_value(counts: Counts) -> StepValue:
    """The value of a prefix without any evidence: all estimates are None."""
    return StepValue(value=None, origin=Origin.UNMEASURED, counts=counts)


def terminal_value(outcome: bool, threshold: float) -> StepValue:
    """The value of a complete chain, which is its outcome and needs no rollout."""
    value = float(outcome)
    return StepValue(
        value=value,
        value_sd=0.0,
        low=value,
        high=value,
        p_above=float(value > threshold),
        unbiased_value=value,
        origin=Origin.TERMINAL,
        counts=Counts(),
    )
