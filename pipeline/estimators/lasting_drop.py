"""The rule `lasting_drop`: a step is bad if the value fell there and never came back. Pure.

With m the best value before the step, that of the bare problem included, and a the best value from the step on, the step is
bad if a <= SHARE * max(m, FLOOR). The outcome of a chain is the value of its last step, and judges that step alone: a chain may
end right by luck, or slip at its end. Values that are missing do not count, and a step without one is never bad.

Where no value before the step reaches FLOOR there is nothing to lose: a policy that cannot solve the problem has low values,
whatever the steps are. The rule calls such a step bad unless the value rises later, and `nothing_to_lose` marks it.

Once a step is bad, all later ones are, up to the last: m never falls and a never rises.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.special import betainc

from pipeline.core.records import Origin, StepValue
from pipeline.estimators.tree import Floats

SHARE = 0.5
"""Of the best value before. On the recorded chains of a 1.5B policy, 0.4 and 0.6 agree with people as well within what these
chains can tell; on the bundled sample 0.4 finds fewer of the planted errors."""
FLOOR = 0.1
"""0.02 to 0.1 agree with people equally well. 0.2 agrees less where rollouts are few, and with 0.02 most planted errors of the
hard problems of the sample are missed."""
ROUNDING = 1e-9
"""Tolerance for a = m / 2 in floating point."""
_GRID: Floats = np.linspace(0.0, 1.0, 201)
_BOUNDS: Floats = SHARE * np.maximum(_GRID, FLOOR)


def with_drops(values: Sequence[StepValue], p_no_drop: Sequence[float | None]) -> list[StepValue]:
    """The K + 1 values of a chain with `p_no_drop` and `nothing_to_lose`. `p_no_drop`: of the steps that the outcome does not
    judge, see `StepValue`; it is the outcome at the end of a chain that has one."""
    root, *steps = values
    known = [value.value for value in values]
    judged = [*p_no_drop, *([steps[-1].value] if _ended(values) else [])]
    return [
        root,
        *(
            replace(step, p_no_drop=p, nothing_to_lose=None if (best := _best(known[:at])) is None else best < FLOOR)
            for at, (step, p) in enumerate(zip(steps, judged, strict=True), start=1)
        ),
    ]


def drop_labels(values: Sequence[StepValue], certainty: float | None) -> list[int | None]:
    """The labels of a chain's K steps from its K + 1 values. None: no value before the step or from it on, no value of a step
    that would be bad, or, with a `certainty`, a label that is right with a smaller probability according to `p_no_drop`."""
    known = [value.value for value in values]
    end = len(known) - _ended(values)
    labels: list[int | None] = []
    for at, step in enumerate(values[1:], start=1):
        before, after = _best(known[:at]), _best(known[at : max(end, at + 1)])
        if before is None or after is None:
            labels.append(None)
            continue
        good = after > SHARE * max(before, FLOOR) + ROUNDING
        sure = step.p_no_drop if good or step.p_no_drop is None else 1 - step.p_no_drop
        known_enough = (good or step.value is not None) and (
            certainty is None or (sure is not None and sure >= certainty)
        )
        labels.append(int(good) if known_enough else None)
    return labels


def independent_no_drop(values: Sequence[StepValue]) -> list[float | None]:
    """`p_no_drop` of the steps that the outcome does not judge, for values that say nothing about each other: each has the
    posterior Beta(c + 1/2, n - c + 1/2) of its own rollouts. None where no prefix before the step, or from it on, has any.

    P(a <= bound(m)) is the integral of F_a(bound(m)) dF_m, and the distribution function of a maximum of independent values is
    the product of theirs. The error of the grid is below 0.01.
    """
    counts = [value.counts for value in values[: len(values) - _ended(values)]]
    known = np.array([each.graded > 0 for each in counts])
    at_grid, at_bounds = np.array([_distribution(each.correct, each.graded) for each in counts]).swapaxes(0, 1)
    before = np.cumprod(at_grid, axis=0)
    after = np.cumprod(at_bounds[::-1], axis=0)[::-1]
    dropped = (np.diff(before, axis=1, prepend=0.0)[:-1] * after[1:]).sum(axis=1)
    there = np.maximum.accumulate(known)[:-1] & np.maximum.accumulate(known[::-1])[::-1][1:]
    return [1 - p if both else None for p, both in zip(np.clip(dropped, 0, 1).tolist(), there.tolist(), strict=True)]


@lru_cache(maxsize=4096)
def _distribution(correct: int, graded: int) -> Floats:
    """P(V <= x) at the grid and at its bounds, (2, points); 1 without a rollout, which leaves a maximum as it is."""
    at = np.stack([_GRID, _BOUNDS])
    return np.asarray(betainc(correct + 0.5, graded - correct + 0.5, at)) if graded else np.ones_like(at)


def _ended(values: Sequence[StepValue]) -> bool:
    return values[-1].origin is Origin.TERMINAL


def _best(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
