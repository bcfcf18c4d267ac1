"""The first_success estimator: it samples a prefix until `successes` rollouts are correct, or until all N are issued.

Labels of the rule `any` have exactly the same distribution as with N rollouts for every prefix, for 1/V rollouts instead of N.
`value` is the posterior mean. `unbiased_value` (`paths.unbiased_value`) is less precise than that of N rollouts, because it
uses fewer.

Up to `batch` rollouts run at once. Only the order of issue counts, never the order of completion: the rule stops at the first
rollout in that order that completes the `successes`. Rollouts issued after it do not count and need not finish, so labels do
not depend on `batch`. An ungraded rollout counts as issued, but as neither correct nor incorrect.

Prefixes that `grow` promoted have a number of rollouts that no outcome decided. All of these count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from pipeline.config.choices import Interval
from pipeline.core.records import ChainShape, Counts, StepValue, Trials
from pipeline.estimators import fixed
from pipeline.estimators.base import Estimator, Need, RolloutRange
from pipeline.estimators.intervals import jeffreys, of_true_answers, true_share
from pipeline.estimators.paths import stopping_interval, unbiased_value
from pipeline.estimators.settings import FirstSuccessConfig, StoppingConfig
from pipeline.estimators.tree import Tree


class Stopping(Estimator):
    """Common part of the estimators that stop after enough correct rollouts of a prefix."""

    settings: StoppingConfig
    stops_early = True
    replayable = True

    def is_finished(self, trials: Trials) -> bool:
        return has_stopped(trials, self.settings)

    def surplus_rollout(self, trials: Trials) -> int | None:
        # After a damaged file was sampled again with other texts, rollouts after it may no longer be needed.
        right = accumulate(outcome is True for outcome in trials.outcomes)
        enough = next((issued for issued, count in enumerate(right, start=1) if count >= self.settings.successes), None)
        if enough is None:
            return None
        issue = -(-enough // self.settings.batch) * self.settings.batch
        return issue if issue < len(trials.outcomes) else None

    def order_lacks(self) -> dict[Need, str]:
        """The need that a log does not meet when several rollouts run at once."""
        if self.settings.batch == 1:
            return {}
        why = (
            f"prefixes were sampled {self.settings.batch} at a time (estimator.batch): which rollouts finished after the first "
            "correct one depends on their length"
        )
        return {Need.FREE_ORDER: why}


class FirstSuccess(Stopping):
    """See the module."""

    Config = FirstSuccessConfig
    needs = frozenset({Need.EVERY_PREFIX})

    def next_rollouts(
        self, problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, state: Any
    ) -> list[dict[str, int]]:
        return fixed.per_prefix(problems, trials, lambda have: rollouts_owed(have, rollouts, self.settings))

    def values(self, chains: Sequence[ChainShape], trials: Mapping[str, Trials], state: Any) -> list[list[StepValue]]:
        return [
            fixed.chain_step_values(chain, trials, lambda have: measured_value(have, self.settings), self.settings)
            for chain in chains
        ]

    def rollout_range(self, rollouts: int) -> RolloutRange:
        return RolloutRange(least=1, most=rollouts)

    def lacks(self) -> Mapping[Need, str]:
        why = (
            "prefixes were sampled until they had a correct rollout (estimator.name=first_success), so correct / graded would "
            "be biased upwards"
        )
        return {Need.FREE_COUNTS: why, **self.order_lacks()}

    def objection(self, sampled: Estimator) -> str | None:
        assert isinstance(sampled, FirstSuccess)
        most = sampled.settings.successes
        if self.settings.successes <= most:
            return None
        return f"prefixes were sampled until they had {most} correct rollouts: estimator.successes can only be lowered"


def rollouts_owed(trials: Trials, rollouts: int, config: StoppingConfig) -> int:
    """The number of rollouts to request next for a prefix. The rest of an interrupted batch comes first."""
    if has_stopped(trials, config):
        return 0
    issued = len(trials.outcomes)
    return min(config.batch - issued % config.batch, max(0, rollouts - issued))


def has_stopped(trials: Trials, config: StoppingConfig) -> bool:
    """Whether no further rollout of a prefix counts, whatever its outcome."""
    return trials.outcomes.count(True) >= config.successes


def measured_value(trials: Trials, config: StoppingConfig) -> StepValue:
    """Value, interval and posterior of a prefix, from its rollouts up to the stopping point.

    A log may contain more rollouts. Those after the stopping point count only for `tokens` and `truncated`, which report the
    cost. The posterior is as in `fixed`: it does not depend on the stopping rule. The interval is exact under the rule, or
    Jeffreys'. The unbiased value may lie outside the interval. The rollouts of a promoted prefix did not stop by the rule, so
    all of them count, and interval and unbiased value are those of `fixed`.
    """
    if trials.promoted:
        return _promoted_value(trials.counts, config)
    stop = _stop(trials.outcomes, config)
    graded = stop.boundaries[-1] if stop.boundaries else 0
    counts = replace(trials.counts, correct=stop.correct, graded=graded, ungraded=stop.issued - graded)
    if graded == 0:
        return fixed.unmeasured_value(counts)
    if config.interval is Interval.clopper_pearson:
        low, high = stopping_interval(stop.boundaries, config.successes, stop.correct, config.confidence)
    else:
        low, high = jeffreys(stop.correct, graded, config.confidence)
    low, high = of_true_answers((low, high), config)
    unbiased = true_share(unbiased_value(stop.boundaries, config.successes, stop.correct), config)
    found = fixed.posterior_value(counts, config)
    return replace(found, low=low, high=high, unbiased_value=unbiased, unbiased_rollouts=graded)


def _promoted_value(counts: Counts, config: StoppingConfig) -> StepValue:
    if counts.graded == 0:
        return fixed.unmeasured_value(counts)
    share = true_share(counts.correct / counts.graded, config)
    found = fixed.posterior_value(counts, config)
    return replace(found, unbiased_value=share, unbiased_rollouts=counts.graded)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stop:
    """The stopping point of a prefix: rollouts issued and correct by then, and the number graded after each rollout."""

    issued: int
    correct: int
    boundaries: tuple[int, ...]


def _stop(outcomes: Sequence[bool | None], config: StoppingConfig) -> _Stop:
    boundaries: list[int] = []
    issued = correct = graded = 0
    while issued < len(outcomes) and correct < config.successes:
        correct += outcomes[issued] is True
        graded += outcomes[issued] is not None
        issued += 1
        boundaries.append(graded)
    return _Stop(issued=issued, correct=correct, boundaries=tuple(boundaries))
