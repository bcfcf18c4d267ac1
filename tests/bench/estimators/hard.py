"""What the default labels say of bad steps and of the step with the error, beside those of fixed N=8, against known values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.config.choices import Goal, Interval, LabelRule
from pipeline.config.label import EstimatorConfig
from pipeline.estimators.settings import FixedConfig, PooledConfig
from tests.bench.estimators.chains import Chains, chains_of
from tests.bench.estimators.families import FAMILIES
from tests.bench.estimators.ours import Replayed, replay
from tests.bench.estimators.rollouts import Rollouts
from tests.bench.synthetic.draw import Integers
from tests.bench.synthetic.policy import Floats

BAD = 0.1
"""A step with a value up to this is bad, as by default."""
FALL = 0.2
"""Chains in which the value decreases by at least this at one step have a step with the error."""
CHAINS = {8: 512, 32: 256}
SEED = 11
FIXED = 8
CEILING = 16
METHODS: dict[str, tuple[EstimatorConfig, int]] = {
    "pooled": (PooledConfig(interval=Interval.posterior, rule=LabelRule.threshold, threshold=BAD), CEILING),
    "pooled, goal=locate": (
        PooledConfig(interval=Interval.posterior, rule=LabelRule.threshold, threshold=BAD, goal=Goal.locate),
        CEILING,
    ),
    "pooled, rule=posterior": (
        PooledConfig(interval=Interval.posterior, rule=LabelRule.posterior, threshold=BAD),
        CEILING,
    ),
    "fixed N=8, rule=any": (FixedConfig(), FIXED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HardLabels:
    """`tokens`: per labelled step. `recall`: share of the bad inner steps with label 0. `precision`: share of the inner
    labels 0 whose step is bad. `located`: share of the chains with a large fall whose estimated one is at the same step.
    `covered`: share of the values before that fall within their interval. `error_over_claim`: mean squared error of the values
    over the mean variance that is claimed; None without a claim."""

    family: str
    steps: int
    method: str
    tokens: float
    rmse: float
    recall: float
    precision: float
    located: float
    covered: float
    error_over_claim: float | None


def hard_labels(family_name: str, steps: int) -> list[HardLabels]:
    family = FAMILIES[family_name](steps)
    chains = chains_of(family, CHAINS[steps], SEED)
    drawn = Rollouts(family, chains, SEED)
    return [
        judged(chains, replay(chains, drawn, config, rollouts=rollouts), family_name, method)
        for method, (config, rollouts) in METHODS.items()
    ]


def judged(chains: Chains, said: Replayed, family: str, method: str) -> HardLabels:
    truth = chains.values
    fixed = method.startswith("fixed")
    mean = np.where(np.isnan(said.unbiased), 0.5, said.unbiased) if fixed else said.mean
    labels = np.array([[np.nan if label is None else label for label in row[:-1]] for row in said.labels], dtype=float)
    bad = truth[:, 1:] <= BAD
    rows, at = falls(truth)
    within = (said.low <= truth) & (truth <= said.high)
    return HardLabels(
        family=family,
        steps=chains.steps,
        method=method,
        tokens=float(said.tokens.mean()),
        rmse=float(np.sqrt(((mean - truth) ** 2).mean())),
        recall=_share(labels[bad] == 0),
        precision=_share(bad[labels == 0]),
        located=_share((-np.diff(mean[rows], axis=1)).argmax(axis=1) == at),
        covered=_share(within[rows, at]),
        error_over_claim=None if fixed else float(((mean - truth) ** 2).mean() / (said.sd**2).mean()),
    )


def falls(truth: Floats) -> tuple[Integers, Integers]:
    """The chains with a large fall, and the prefix before their largest one."""
    down = -np.diff(truth, axis=1)
    rows = np.flatnonzero(down.max(axis=1) >= FALL)
    return rows, down[rows].argmax(axis=1)


def _share(found: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]") -> float:
    return float(found.mean()) if found.size else float("nan")


def hard_table(found: Sequence[HardLabels]) -> Iterator[str]:
    yield (
        f"hard labels and the step with the error: of inner steps with V <= {BAD:g}, the share labelled 0; of inner 0s, "
        f"the share with V <= {BAD:g};"
    )
    yield f"chains with a fall of at least {FALL:g}: located at the right step, and value before it within its interval"
    yield (
        f"  {'family':<12}{'K':>3}  {'labels by':<24}{'tok/step':>9}{'RMSE':>7}{'bad are 0':>11}{'0s are bad':>12}"
        f"{'located':>9}{'covered':>9}{'error/claim':>13}"
    )
    for each in found:
        claim = "-" if each.error_over_claim is None else f"{each.error_over_claim:.2f}"
        yield (
            f"  {each.family:<12}{each.steps:>3}  {each.method:<24}{each.tokens:>9,.0f}{each.rmse:>7.3f}{each.recall:>11.0%}"
            f"{each.precision:>12.0%}{each.located:>9.0%}{each.covered:>9.0%}{claim:>13}"
        )
