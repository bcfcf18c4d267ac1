"""All methods on one family at one K, on the same chains and the same rollouts."""

from dataclasses import dataclass

import numpy as np

from pipeline.choices import EstimatorName, Interval
from pipeline.config import EstimatorConfig
from tests.bench.estimators.chains import Chains, chains_of
from tests.bench.estimators.families import FAMILIES
from tests.bench.estimators.figures import Point
from tests.bench.estimators.measured import Measured
from tests.bench.estimators.ours import Replayed, replay
from tests.bench.estimators.peers import PEERS
from tests.bench.estimators.rollouts import Rollouts
from tests.bench.synthetic.policy import Floats

SEED = 7
CHAINS = {4: 1024, 8: 1024, 16: 768, 32: 512, 64: 384}
TARGETS = (0.2, 0.16, 0.13, 0.1, 0.08, 0.065)
USUAL_TARGET = 0.1
"""The default of `estimator.target_sd`: coverage is told there."""
CEILING = 16
"""Rollouts per prefix that a chain may take on average: twice the default, so that the curve passes the error of fixed N=8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Shares of values within low..high, within mean +- 1.96 sd, and within mean +- 1 sd; the mean squared error over the mean
    variance that is claimed. `chains`: their number, which is what the shares rest on."""

    interval: float
    by_sd: float
    one_sd: float
    error_over_claim: float
    chains: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    family: str
    steps: int
    points: tuple[Point, ...]
    coverage: Coverage

    def point(self, name: str) -> Point:
        return next(point for point in self.points if point.name == name)

    @property
    def curve(self) -> list[Point]:
        return [point for point in self.points if point.method == "pooled"]


def pooled(target_sd: float) -> EstimatorConfig:
    return EstimatorConfig(name=EstimatorName.pooled, interval=Interval.posterior, target_sd=target_sd)


def measure(family_name: str, steps: int) -> Cell:
    family = FAMILIES[family_name](steps)
    chains = chains_of(family, CHAINS[steps], SEED)
    drawn = Rollouts(family, chains, SEED)
    points = []
    for name, peer in PEERS.items():
        method, _, setting = name.partition(" ")
        points.append(_point(family_name, method, setting, peer(chains, drawn), chains.values))
    coverage = None
    for target in TARGETS:
        said = replay(chains, drawn, pooled(target), rollouts=CEILING)
        points.append(_point(family_name, "pooled", f"sd={target:g}", said.by_mean, chains.values))
        if target == USUAL_TARGET:
            coverage = covered(said, chains)
    assert coverage is not None
    return Cell(family=family_name, steps=steps, points=tuple(points), coverage=coverage)


def covered(said: Replayed, chains: Chains) -> Coverage:
    error = np.abs(said.mean - chains.values)
    return Coverage(
        interval=float(((said.low <= chains.values) & (chains.values <= said.high)).mean()),
        by_sd=float((error <= 1.96 * said.sd).mean()),
        one_sd=float((error <= said.sd).mean()),
        error_over_claim=float((error**2).mean() / (said.sd**2).mean()),
        chains=chains.count,
    )


def _point(family: str, method: str, setting: str, found: Measured, truth: Floats) -> Point:
    return Point(
        family=family,
        steps=truth.shape[1],
        method=method,
        setting=setting,
        tokens_per_step=found.tokens_per_step,
        rollouts_per_chain=found.rollouts_per_chain,
        rmse=found.rmse(truth),
        valued=found.valued,
    )
