"""The first_success estimator: a prefix is sampled until `successes` rollouts are right, or all N are issued.

Labels of the rule `any` are distributed exactly as with N rollouts for every prefix, for 1/V rollouts instead of N.
Values stay unbiased (`paths.unbiased_value`), and say less than those of N rollouts: they rest on fewer.

Up to `batch` rollouts are under way at a time. Only the order of issue counts, never that of completion: the rule stops at the
first rollout in that order with which there are enough, and what was issued behind it neither counts nor has to be finished.
So labels do not depend on `batch`. A rollout that was not graded is issued, and neither right nor wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from pipeline.config.choices import Interval
from pipeline.core.records import ChainShape, StepValue, Trials
from pipeline.estimators import fixed
from pipeline.estimators.base import Estimator, Need, RolloutRange
from pipeline.estimators.intervals import jeffreys
from pipeline.estimators.paths import stopping_interval, unbiased_value
from pipeline.estimators.settings import FirstSuccessConfig, StoppingConfig
from pipeline.estimators.tree import Tree


class Stopping(Estimator):
    """What estimators that stop at right rollouts of a prefix have in common."""

    settings: StoppingConfig
    stops_early = True
    replayable = True

    def stopped(self, trials: Trials) -> bool:
        return has_stopped(trials, self.settings)

    def needless(self, trials: Trials) -> int | None:
        # Where a damaged file was made anew with other texts, what was sampled after it may have become needless.
        right = accumulate(outcome is True for outcome in trials.outcomes)
        enough = next((issued for issued, count in enumerate(right, start=1) if count >= self.settings.successes), None)
        if enough is None:
            return None
        issue = -(-enough // self.settings.batch) * self.settings.batch
        return issue if issue < len(trials.outcomes) else None

    def order_lacks(self) -> dict[Need, str]:
        """What several rollouts at a time take from a log."""
        if self.settings.batch == 1:
            return {}
        why = (
            f"prefixes were sampled {self.settings.batch} at a time (estimator.batch): which rollouts came in behind the first "
            "right one depends on how long they were"
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

    def planned(self, rollouts: int) -> RolloutRange:
        return RolloutRange(least=1, most=rollouts)

    def lacks(self) -> Mapping[Need, str]:
        why = (
            "prefixes were sampled until they had a right rollout (estimator.name=first_success), so correct / graded would be "
            "biased upwards"
        )
        return {Need.FREE_COUNTS: why, **self.order_lacks()}

    def objection(self, sampled: Estimator) -> str | None:
        assert isinstance(sampled, FirstSuccess)
        most = sampled.settings.successes
        if self.settings.successes <= most:
            return None
        return f"prefixes were sampled until they had {most} right rollouts: estimator.successes can be lowered only"


def rollouts_owed(trials: Trials, rollouts: int, config: StoppingConfig) -> int:
    """How many rollouts a prefix is owed next, the rest of a batch that was cut first."""
    if has_stopped(trials, config):
        return 0
    issued = len(trials.outcomes)
    return min(config.batch - issued % config.batch, max(0, rollouts - issued))


def has_stopped(trials: Trials, config: StoppingConfig) -> bool:
    """Whether no further rollout of a prefix counts, whatever becomes of it."""
    return trials.outcomes.count(True) >= config.successes


def measured_value(trials: Trials, config: StoppingConfig) -> StepValue:
    """Value, interval and posterior of a prefix, from its rollouts up to where the rule stops.

    A log may hold more. What is beyond the stop does not count, but for `tokens` and `truncated`, which tell what was spent.
    The posterior is as in `fixed`: it does not depend on why sampling stopped. The interval is exact under the rule, or
    Jeffreys'; the value may lie outside of it.
    """
    stop = _stop(trials.outcomes, config)
    graded = stop.boundaries[-1] if stop.boundaries else 0
    counts = replace(trials.counts, correct=stop.correct, graded=graded, ungraded=stop.issued - graded)
    if graded == 0:
        return fixed.unmeasured_value(counts)
    if config.interval is Interval.clopper_pearson:
        low, high = stopping_interval(stop.boundaries, config.successes, stop.correct, config.confidence)
    else:
        low, high = jeffreys(stop.correct, graded, config.confidence)
    value = unbiased_value(stop.boundaries, config.successes, stop.correct)
    return replace(fixed.measured_value(counts, config), value=value, low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stop:
    """Where a prefix's rollouts end: how many were issued and right by then, and the graded ones by each of them."""

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
