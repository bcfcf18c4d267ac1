"""A scorer whose truth is known, for tests and dry runs: the true value of each prefix with noise of a chosen AUC and a chosen
miscalibration. It is never chosen implicitly.

The true value V of a prefix is that of the oracle policy (`engines.oracle.true_value`) with the same seed and spread. A score
is

    sigmoid(slope * logit(V) + shift + sigma * z),    z standard normal, a pure function of (seed, prefix)

so that equal prefixes have equal scores. `noise_for` chooses sigma from the AUC.
"""

import asyncio
import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from pipeline.core.errors import EngineDied
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.engines.oracle import uniform, value_of
from pipeline.scorers.base import Scorer, ScoringEngine, StepScores
from pipeline.scorers.readouts import sigmoid
from pipeline.scorers.settings import OracleScorerConfig, OracleScores

_CAPACITY = 4096
_LEAST = 1e-3
"""Values nearer to 0 or 1 than this count as this: their log odds have no end."""
_QUANTILES = 64
"""Points per dimension of the grid that stands for the distribution of true values."""
_MOST_SIGMA = 1e3
_NORMAL = NormalDist()


class OracleScoring:
    """See the module. `attempt` counts from 1. Faults after a number of chains occur only on the first attempt, so a retry
    succeeds. The fault of a certain chain occurs on every attempt."""

    capacity = _CAPACITY

    def __init__(self, settings: OracleScores, *, attempt: int, newest_only: bool) -> None:
        self._settings = settings
        self._faults = attempt == 1
        self._newest_only = newest_only
        self._scored = 0
        self._sigma = noise_for(settings.auc, settings.spread, settings.threshold, settings.slope)
        own = settings
        self.model = (
            f"oracle:seed={own.seed},spread={own.spread:g},auc={own.auc:g},slope={own.slope:g},shift={own.shift:g}"
        )

    async def start(self) -> None:
        return

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        own = self._settings
        if self._faults and own.fail_after and self._scored >= own.fail_after:
            raise EngineDied("the oracle scorer died because of scorer.oracle.fail_after")
        if own.poison and any(chain.chain_id.startswith(own.poison) for chain in chains):
            raise EngineDied("the oracle scorer died because of scorer.oracle.poison")
        if self._faults and own.hang_after and self._scored >= own.hang_after:
            await asyncio.Event().wait()
        if own.chains_per_second:
            await asyncio.sleep(len(chains) / own.chains_per_second)
        self._scored += len(chains)
        return [self._scores(chain) for chain in chains]

    async def close(self) -> None:
        return

    def _scores(self, chain: ChainText) -> StepScores:
        ids = chain.prefix_ids
        first = len(ids) - 1 if self._newest_only else 0
        scores = (*(None,) * first, *(self._score(chain.problem_id, prefix_id) for prefix_id in ids[first:]))
        return StepScores(scores=scores, positions=(None,) * len(ids))

    def _score(self, problem_id: str, prefix_id: str) -> float:
        own = self._settings
        value = value_of(own.seed, own.spread, problem_id, prefix_id)
        odds = own.slope * logit(value) + own.shift
        if self._sigma:
            odds += self._sigma * _NORMAL.inv_cdf(_inside(uniform(f"{own.seed}:score:{prefix_id}")))
        return sigmoid(odds)


class Oracle(Scorer):
    """The oracle as a scorer (`scorer=oracle`)."""

    Config = OracleScorerConfig
    settings: OracleScorerConfig

    def engine(self, around: Surroundings, *, newest_only: bool = False) -> ScoringEngine:
        return OracleScoring(self.settings.oracle, attempt=around.attempt, newest_only=newest_only)


def logit(value: float) -> float:
    """The log odds of a true value; see `_LEAST`."""
    inside = min(1.0 - _LEAST, max(_LEAST, value))
    return math.log(inside / (1.0 - inside))


@cache
def noise_for(auc: float, spread: float, threshold: float, slope: float) -> float:
    """The standard deviation of the noise, on the scale of log odds, with which scores have this AUC.

    The AUC is P(a good step scores higher than a bad one), over independent prefixes of the oracle policy; good steps have a
    value above `threshold`. For two prefixes with log odds a and b it is Phi(slope * (a - b) / (sigma * sqrt 2)).
    """
    if auc >= 1.0:
        return 0.0
    points = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    values = np.clip(points[:, None] + spread * (2 * points[None, :] - 1), _LEAST, 1 - _LEAST).ravel()
    odds = slope * np.log(values / (1 - values))
    # Quantiles of each side stand for it: all pairs of the grid would be millions.
    shares = np.linspace(0, 1, 4 * _QUANTILES)
    good, bad = np.quantile(odds[values > threshold], shares), np.quantile(odds[values <= threshold], shares)
    gaps = (good[:, None] - bad[None, :]) / math.sqrt(2)

    def excess(sigma: float) -> float:
        return float(ndtr(gaps / sigma).mean()) - auc

    return float(brentq(excess, 1e-9, _MOST_SIGMA))


def _inside(share: float) -> float:
    """A number of [0, 1) moved into (0, 1), where the inverse of the normal distribution exists."""
    return min(1.0 - 1e-12, max(1e-12, share))
