"""The first_success estimator: a prefix is sampled in rounds until `successes` rollouts are right, or all N are issued.

Labels of the rule `any` are distributed exactly as with N rollouts for every prefix, for 1/V rollouts instead of N.
Values stay unbiased (`paths.unbiased`), and say less than those of N rollouts: they rest on fewer.

Rounds end where the number issued is a multiple of `batch`, and at N. Only the order of issue counts, so a run that was cut
within a round decides as one that was not. A rollout that was not graded is issued, and neither right nor wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.choices import Interval
from pipeline.config import EstimatorConfig
from pipeline.estimate import fixed
from pipeline.estimate.intervals import jeffreys
from pipeline.estimate.paths import stopping_interval, unbiased
from pipeline.records import StepValue, Trials


def owed(trials: Trials, rollouts: int, config: EstimatorConfig) -> int:
    """How many rollouts the next round of a prefix needs; what a round that was cut still lacks comes first."""
    issued = len(trials.outcomes)
    left = max(0, rollouts - issued)
    begun = issued % config.batch
    if begun == 0 and trials.outcomes.count(True) >= config.successes:
        return 0
    return min(config.batch - begun, left)


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
    """Where a prefix's rounds end: rollouts issued and right by then, and the graded ones by the end of each round."""

    issued: int
    correct: int
    boundaries: tuple[int, ...]


def _stop(outcomes: Sequence[bool | None], config: EstimatorConfig) -> _Stop:
    boundaries: list[int] = []
    issued = correct = graded = 0
    while issued < len(outcomes) and correct < config.successes:
        together = outcomes[issued : issued + config.batch]
        issued += len(together)
        correct += together.count(True)
        graded += len(together) - together.count(None)
        boundaries.append(graded)
    return _Stop(issued=issued, correct=correct, boundaries=tuple(boundaries))
