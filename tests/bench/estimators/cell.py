"""All methods on one family at one K, on the same chains and the same rollouts."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.config.choices import Interval
from pipeline.estimators.settings import PooledConfig
from tests.bench.estimators.chains import Chains, chains_of
from tests.bench.estimators.families import FAMILIES
from tests.bench.estimators.figures import Point
from tests.bench.estimators.measured import Measured
from tests.bench.estimators.ours import Replayed, replay
from tests.bench.estimators.peers import PEERS
from tests.bench.estimators.rollouts import Rollouts
from tests.bench.synthetic.draw import Integers
from tests.bench.synthetic.policy import Floats

SEED = 7
CHAINS = {4: 768, 8: 768, 16: 768, 32: 512, 64: 384}
"""Half as many of the families that nothing is asked of."""
MAIN = ("jump", "smooth", "independent")
TARGETS = (0.2, 0.16, 0.13, 0.1, 0.08, 0.065)
USUAL_TARGET = 0.1
"""The default of `estimator.target_sd`: coverage is reported there."""
CEILING = 16
"""Rollouts per prefix that a chain may take on average: twice the default, so that the curve passes the error of fixed N=8."""


GROUPS = 16
"""The number of groups of chains. Each is left out in turn, to measure how much a figure depends on its chains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Shares of values within low..high, within mean +- 1.96 sd, and within mean +- 1 sd; the mean squared error over the mean
    variance that is claimed."""

    interval: float
    by_sd: float
    one_sd: float
    error_over_claim: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """`without`: the same with a group of chains left out, for each group."""

    family: str
    steps: int
    points: tuple[Point, ...]
    coverage: Coverage
    without: tuple["Cell", ...] = ()

    def point(self, name: str) -> Point:
        return next(point for point in self.points if point.name == name)

    @property
    def curve(self) -> list[Point]:
        return [point for point in self.points if point.method == "pooled"]


def standard_error(cell: Cell, figure: Callable[[Cell], float | None]) -> float | None:
    """Of a figure of a cell, by the jackknife over its groups of chains; None where one of them does not have the figure."""
    values = [figure(rest) for rest in cell.without]
    known = np.array([value for value in values if value is not None])
    if len(known) < len(values):
        return None
    return float(np.sqrt((len(known) - 1) / len(known) * ((known - known.mean()) ** 2).sum()))


def pooled(target_sd: float) -> PooledConfig:
    return PooledConfig(interval=Interval.posterior, target_sd=target_sd)


def measure(family_name: str, steps: int) -> Cell:
    family = FAMILIES[family_name](steps)
    chains = chains_of(family, CHAINS[steps] // (1 if family_name in MAIN else 2), SEED)
    drawn = Rollouts(family, chains, SEED)
    found = {name: peer(chains, drawn) for name, peer in PEERS.items()}
    usual = None
    for target in TARGETS:
        said = replay(chains, drawn, pooled(target), rollouts=CEILING)
        found[f"pooled sd={target:g}"] = said.by_mean
        if target == USUAL_TARGET:
            usual = said
    assert usual is not None

    def cell(kept: Integers, without: tuple[Cell, ...] = ()) -> Cell:
        return Cell(
            family=family_name,
            steps=steps,
            points=tuple(
                _point(family_name, name, measured.only(kept), chains.values[kept]) for name, measured in found.items()
            ),
            coverage=_covered(usual, chains, kept),
            without=without,
        )

    every = np.arange(chains.count)
    return cell(every, tuple(cell(every[every % GROUPS != group]) for group in range(GROUPS)))


def _covered(said: Replayed, chains: Chains, kept: Integers) -> Coverage:
    truth, sd = chains.values[kept], said.sd[kept]
    error = np.abs(said.mean[kept] - truth)
    return Coverage(
        interval=float(((said.low[kept] <= truth) & (truth <= said.high[kept])).mean()),
        by_sd=float((error <= 1.96 * sd).mean()),
        one_sd=float((error <= sd).mean()),
        error_over_claim=float((error**2).mean() / (sd**2).mean()),
    )


def _point(family: str, name: str, found: Measured, truth: Floats) -> Point:
    method, _, setting = name.partition(" ")
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
