"""The first_success estimator: a prefix is sampled until `successes` rollouts are right, or all N are issued.

Labels of the rule `any` are distributed exactly as with N rollouts for every prefix, for 1/V rollouts instead of N.
Values stay unbiased (`paths.unbiased`), and say less than those of N rollouts: they rest on fewer.

Up to `batch` rollouts are under way at a time. Only the order of issue counts, never that of completion: the rule stops at the
first rollout in that order with which there are enough, and what was issued behind it neither counts nor has to be finished.
So labels do not depend on `batch`. A rollout that was not graded is issued, and neither right nor wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.config.choices import Interval
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import StepValue, Trials
from pipeline.estimators import fixed
from pipeline.estimators.intervals import jeffreys
from pipeline.estimators.paths import stopping_interval, unbiased


def owed(trials: Trials, rollouts: int, config: EstimatorConfig) -> int:
    """How many rollouts a prefix is owed next, the rest of a batch that was cut first."""
    if stopped(trials, config):
        return 0
    issued = len(trials.outcomes)
    return min(config.batch - issued % config.batch, max(0, rollouts - issued))


def stopped(trials: Trials, config: EstimatorConfig) -> bool:
    """Whether no further rollout of a prefix counts, whatever becomes of it."""
    return trials.outcomes.count(True) >= config.successes


def measured(trials: Trials, config: EstimatorConfig) -> StepValue:
    """Value, interval and posterior of a prefix, from its rollouts up to where the rule stops.

    A log may hold more. What is beyond the stop does not count, but for `tokens` and `truncated`, which tell what was spent.
    The posterior is as in `fixed`: it does not depend on why sampling stopped. The interval is exact under the rule, or
    Jeffreys'; the value may lie outside of it.
    """
    stop = _stop(trials.outcomes, config)
    graded = stop.boundaries[-1] if stop.boundaries else 0
    counts = replace(trials.counts, correct=stop.correct, graded=graded, ungraded=stop.issued - graded)
    if graded == 0:
        return fixed.unmeasured(counts)
    if config.interval is Interval.clopper_pearson:
        low, high = stopping_interval(stop.boundaries, config.successes, stop.correct, config.confidence)
    else:
        low, high = jeffreys(stop.correct, graded, config.confidence)
    value = unbiased(stop.boundaries, config.successes, stop.correct)
    return replace(fixed.measured(counts, config), value=value, low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stop:
    """Where a prefix's rollouts end: how many were issued and right by then, and the graded ones by each of them."""

    issued: int
    correct: int
    boundaries: tuple[int, ...]


def _stop(outcomes: Sequence[bool | None], config: EstimatorConfig) -> _Stop:
    boundaries: list[int] = []
    issued = correct = graded = 0
    while issued < len(outcomes) and correct < config.successes:
        correct += outcomes[issued] is True
        graded += outcomes[issued] is not None
        issued += 1
        boundaries.append(graded)
    return _Stop(issued=issued, correct=correct, boundaries=tuple(boundaries))
