"""Bias of the column `value`, by bins of the true value, where wrong answers take twice as long.

What a rule says of a prefix with outcomes x_1, x_2, ... is compared with the truth V; the differences x_i - V, whose means are
zero whatever the rule, are regressed out, which lowers the standard error and leaves the bias as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pipeline.config.choices import Interval
from pipeline.estimators.settings import FirstSuccessConfig
from tests.bench.estimators.cell import SEED, USUAL_TARGET, pooled
from tests.synthetic.chains import Chains, chains_of
from tests.synthetic.families import length
from tests.synthetic.policy import Floats
from tests.synthetic.replayed import replay
from tests.synthetic.rollouts import RIGHT, Rollouts

BINS = 10
STEPS = 4
CHAINS = 35_000
"""In each of PARTS independent parts."""
FEWER_CHAINS = 7_000
"""For rules that look at a prefix's own outcomes only: the controls take away most of their variance."""
PARTS = 10
UNIT = 128
CONTROLS = 8
ISSUED, KEPT = 16, 8
"""For contrast: of ISSUED rollouts, the KEPT that finish first count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """Of one rule: mean of value - V in each bin of V, its standard error, and the number of prefixes with a value."""

    rule: str
    mean: tuple[float, ...]
    error: tuple[float, ...]
    prefixes: tuple[int, ...]


def biases(part: int) -> list[Bias]:
    family = length(STEPS)
    seed = SEED + 1 + part
    chains = chains_of(family, CHAINS, seed)
    drawn = Rollouts(family, chains, seed)
    block = drawn.first(ISSUED)
    found = [
        bias(
            "pooled",
            replay(chains, drawn, pooled(USUAL_TARGET), rollouts=8, unit=UNIT).unbiased,
            chains,
            block.outcomes,
        )
    ]
    fewer = chains_of(family, FEWER_CHAINS, seed)
    of_fewer = Rollouts(family, fewer, seed)
    settings = FirstSuccessConfig(interval=Interval.jeffreys, successes=2, batch=3)
    said = replay(fewer, of_fewer, settings, rollouts=8, unit=UNIT)
    rule = "first_success, successes=2, batch=3"
    found.append(bias(rule, said.unbiased, fewer, of_fewer.first(CONTROLS).outcomes))
    # The controls themselves: that they are fair is measured, not assumed.
    value = (block.outcomes[:, :, :ISSUED] == RIGHT).mean(axis=2)
    found.append(bias(f"fixed, N={ISSUED}, no controls", value, chains, block.outcomes, controlled=False))
    finished = bias(
        f"the first {KEPT} of {ISSUED} that finish",
        first_finished(block.outcomes, block.tokens),
        chains,
        block.outcomes,
    )
    return [*found, finished]


def together(parts: Sequence[Sequence[Bias]]) -> list[Bias]:
    """Of each rule, from all parts: each bin's means, weighed by their prefixes."""
    return [_together(of_one_rule) for of_one_rule in zip(*parts, strict=True)]


def _together(parts: Sequence[Bias]) -> Bias:
    weights = np.array([part.prefixes for part in parts], dtype=float)
    weights /= weights.sum(axis=0)
    mean = (weights * np.array([part.mean for part in parts])).sum(axis=0)
    error = np.sqrt(((weights * np.array([part.error for part in parts])) ** 2).sum(axis=0))
    prefixes = np.array([part.prefixes for part in parts]).sum(axis=0)
    return replace(parts[0], mean=tuple(mean.tolist()), error=tuple(error.tolist()), prefixes=tuple(prefixes.tolist()))


def first_finished(outcomes: npt.NDArray[np.int8], tokens: npt.NDArray[np.int32]) -> Floats:
    """c/n of those that would come in first if all ISSUED rollouts of a prefix began together."""
    order = np.argsort(tokens[:, :, :ISSUED], axis=2, kind="stable")[:, :, :KEPT]
    return np.asarray((np.take_along_axis(outcomes[:, :, :ISSUED], order, axis=2) == RIGHT).mean(axis=2))


def bias(rule: str, value: Floats, chains: Chains, outcomes: npt.NDArray[np.int8], *, controlled: bool = True) -> Bias:
    """The intercept of the regression on the controls, bin by bin, or the mean difference. Every rollout must be graded."""
    truth = chains.values
    bins = np.minimum((truth * BINS).astype(int), BINS - 1)
    controls = (outcomes[:, :, :CONTROLS] == RIGHT) - truth[:, :, None]
    means, errors, numbers = [], [], []
    for place in range(BINS):
        here = (bins == place) & ~np.isnan(value)
        differences = (value - truth)[here]
        mean, error = _intercept(differences, controls[here]) if controlled else _mean(differences)
        means.append(mean)
        errors.append(error)
        numbers.append(int(here.sum()))
    return Bias(rule=rule, mean=tuple(means), error=tuple(errors), prefixes=tuple(numbers))


def _mean(differences: Floats) -> tuple[float, float]:
    return float(differences.mean()), float(differences.std() / np.sqrt(len(differences)))


def _intercept(differences: Floats, controls: Floats) -> tuple[float, float]:
    design = np.concatenate([np.ones((len(controls), 1)), controls], axis=1)
    gram = np.linalg.pinv(design.T @ design)
    slopes = gram @ design.T @ differences
    rest = differences - design @ slopes
    return float(slopes[0]), float(np.sqrt(gram[0, 0] * (rest @ rest) / len(rest)))
