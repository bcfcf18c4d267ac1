"""All methods on one family at one K, on the same chains and the same rollouts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pipeline.config.choices import Interval
from pipeline.estimators.settings import PooledConfig
from tests.bench.estimators.peers import PEERS
from tests.synthetic.chains import Chains, chains_of
from tests.synthetic.draw import Integers
from tests.synthetic.families import FAMILIES
from tests.synthetic.measured import Measured
from tests.synthetic.policy import Floats
from tests.synthetic.replayed import Replayed, replay
from tests.synthetic.rollouts import Rollouts

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
STANDARD = "fixed N=8"
FIXED_ERROR = 0.10
SHORTEST = 8
"""Steps of chains from which on growth with their number is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One method with one setting on one family and K. Points of `pooled` are a curve over `target_sd`."""

    method: str
    setting: str
    tokens_per_step: float
    rollouts_per_chain: float
    rmse: float
    valued: float

    @property
    def name(self) -> str:
        return f"{self.method} {self.setting}".strip()


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


def cost_at(curve: Sequence[Point], rmse: float, cost: str = "tokens_per_step") -> float | None:
    """The cost at which a curve reaches an error: between two neighbouring points, on a line in logarithms of both.

    None where the error is outside of the curve: nothing is extrapolated.
    """
    ordered = sorted(curve, key=lambda point: point.tokens_per_step)
    for cheap, dear in pairwise(ordered):
        if dear.rmse <= rmse <= cheap.rmse:
            share = np.log(cheap.rmse / rmse) / np.log(cheap.rmse / dear.rmse) if cheap.rmse > dear.rmse else 0.0
            return float(getattr(cheap, cost) ** (1 - share) * getattr(dear, cost) ** share)
    return None


def fewer(cell: Cell, standard: str = STANDARD) -> float | None:
    """Tokens of a standard over those of pooled at the same error. It is a lower bound where even the cheapest of pooled's
    points has a smaller error; None where none has so small a one."""
    point = cell.point(standard)
    cheapest = min(cell.curve, key=lambda ours: ours.tokens_per_step)
    ours = cheapest.tokens_per_step if cheapest.rmse <= point.rmse else cost_at(cell.curve, point.rmse)
    return None if ours is None else point.tokens_per_step / ours


def growth_of(cells: Sequence[Cell]) -> float | None:
    """The exponent of rollouts per chain at FIXED_ERROR in K, from SHORTEST steps on: least squares in logarithms. None where
    fewer than two K reach the error."""
    costs = {cell.steps: cost_at(cell.curve, FIXED_ERROR, "rollouts_per_chain") for cell in cells}
    known = {steps: cost for steps, cost in costs.items() if cost is not None and steps >= SHORTEST}
    return float(np.polyfit(np.log(list(known)), np.log(list(known.values())), 1)[0]) if len(known) > 1 else None


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
            points=tuple(_point(name, measured.only(kept), chains.values[kept]) for name, measured in found.items()),
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


def _point(name: str, found: Measured, truth: Floats) -> Point:
    method, _, setting = name.partition(" ")
    return Point(
        method=method,
        setting=setting,
        tokens_per_step=found.tokens_per_step,
        rollouts_per_chain=found.rollouts_per_chain,
        rmse=found.rmse(truth),
        valued=found.valued,
    )
