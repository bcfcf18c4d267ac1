"""Figures from points: what a curve costs at a given error, and how fast a cost grows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One method with one setting on one family and K. `ours` points of a method are a curve over `target_sd`."""

    family: str
    steps: int
    method: str
    setting: str
    tokens_per_step: float
    rollouts_per_chain: float
    rmse: float
    valued: float

    @property
    def name(self) -> str:
        return f"{self.method} {self.setting}".strip()


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


def growth(steps: Sequence[int], costs: Sequence[float]) -> float:
    """The exponent e of costs that grow as steps to the power of e: least squares in logarithms. At least two points."""
    return float(np.polyfit(np.log(steps), np.log(costs), 1)[0])
