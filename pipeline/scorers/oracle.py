"""A scorer whose truth is known, for tests and dry runs: the true value of each prefix with noise of a chosen AUC. It is never
chosen implicitly.

The true value V of a prefix is that of the oracle policy with the same settings: `engines.oracle.true_value`, or in the tree
world that of the node which the texts of the steps name (`engines.oracle_tree`). A score is

    sigmoid(logit(V) + sigma * z),    z standard normal, a pure function of (seed, prefix)

so that equal prefixes have equal scores. `noise_for` chooses sigma from the AUC.

Its tokens are made up: a byte of the problem or of a step is one. With `newest_only` it computes only those that follow the
longest beginning which an earlier chain had; else all of them.
"""

import math
from collections.abc import Sequence
from functools import cache
from itertools import islice
from statistics import NormalDist

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from pipeline.config.oracle_world import World
from pipeline.core.records import ChainText
from pipeline.engines.base import Policy, Surroundings
from pipeline.engines.oracle import value_of
from pipeline.engines.oracle_tree import USUAL, Shape, Tree, uniform
from pipeline.scorers.base import Scorer, ScoringEngine, StepScores
from pipeline.scorers.readouts import sigmoid
from pipeline.scorers.settings import OracleScorerConfig, OracleScores

_CAPACITY = 4096
_LEAST = 1e-3
"""Values nearer to 0 or 1 than this count as this: their log odds have no end."""
_GOOD = 0.5
"""Steps with a higher value are good, for the AUC."""
_QUANTILES = 64
"""Points per dimension of the grid that stands for the distribution of true values."""
_MOST_SIGMA = 1e3
_REMEMBERED_PREFIXES = 1 << 20
_NORMAL = NormalDist()


class OracleScoring:
    """See the module."""

    capacity = _CAPACITY

    def __init__(self, settings: OracleScores, *, newest_only: bool, shape: Shape = USUAL) -> None:
        self._seed = settings.seed
        self._spread = shape.spread
        self._newest_only = newest_only
        self._tree = Tree(self._seed, shape) if settings.world is World.tree else None
        self._seen: set[str] = set()
        self._sigma = 0.0
        if settings.auc < 1.0:
            self._sigma = (
                noise_in_tree(self._tree, settings.auc) if self._tree else noise_for(settings.auc, shape.spread)
            )
        self.model = f"oracle:seed={self._seed},auc={settings.auc:g}" + (",world=tree" if self._tree else "")

    async def start(self) -> None:
        return

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        return [self._scores(chain) for chain in chains]

    async def close(self) -> None:
        return

    def _scores(self, chain: ChainText) -> StepScores:
        count = len(chain.prefix_ids)
        first = count - 1 if self._newest_only else 0
        values = self._values(chain, first)
        scores = (*(None,) * first, *map(self._score, values, chain.prefix_ids[first:]))
        sizes = [len(text.encode("utf-8", "replace")) for text in (chain.problem, *chain.steps)]
        return StepScores(
            scores=scores,
            positions=(None,) * count,
            n_tokens=sum(sizes),
            n_computed=sum(sizes[self._known(chain) :]),
        )

    def _known(self, chain: ChainText) -> int:
        """How many of the texts, the problem and then the steps, an earlier chain began with. From now on all are known."""
        if not self._newest_only:
            return 0
        if len(self._seen) >= _REMEMBERED_PREFIXES:
            self._seen.clear()
        ids = (chain.problem_id, *chain.prefix_ids)
        known = next((at for at, each in enumerate(ids) if each not in self._seen), len(ids))
        self._seen.update(ids[known:])
        return known

    def _score(self, value: float, prefix_id: str) -> float:
        odds = logit(value)
        if self._sigma:
            odds += self._sigma * _NORMAL.inv_cdf(_inside(uniform(f"{self._seed}:score:{prefix_id}")))
        return sigmoid(odds)

    def _values(self, chain: ChainText, first: int) -> list[float]:
        """The true values of the steps from the one with the index `first` on."""
        problem_id = chain.problem_id
        known: list[float] = []
        if self._tree is not None:
            paths = islice(self._tree.paths_of(problem_id, chain.steps), first, None)
            known = [self._tree.value(problem_id, path) for path in paths]
        others = chain.prefix_ids[first + len(known) :]
        return known + [value_of(self._seed, self._spread, problem_id, prefix_id) for prefix_id in others]


class Oracle(Scorer):
    """The oracle as a scorer (`scorer=oracle`)."""

    Config = OracleScorerConfig
    settings: OracleScorerConfig

    def engine(self, around: Surroundings, *, newest_only: bool = False) -> ScoringEngine:
        return OracleScoring(self.settings.oracle, newest_only=newest_only)

    def states_reliability(self) -> bool:
        return False

    def warnings_beside(self, policy: Policy) -> Sequence[str]:
        world = policy.world()
        if world is None:
            return ()
        own = self.settings.oracle
        pairs = (("seed", own.seed, world.seed), ("world", own.world.value, world.world.value))
        other = [
            f"scorer.oracle.{key}={ours} beside policy.oracle.{key}={theirs}"
            for key, ours, theirs in pairs
            if ours != theirs
        ]
        return (f"{', '.join(other)}: the scores are those of another world's chains",) if other else ()


def logit(value: float) -> float:
    """The log odds of a true value; see `_LEAST`."""
    inside = min(1.0 - _LEAST, max(_LEAST, value))
    return math.log(inside / (1.0 - inside))


@cache
def noise_for(auc: float, spread: float) -> float:
    """The standard deviation of the noise, on the scale of log odds, with which scores have this AUC below 1.

    The AUC is P(a good step scores higher than a bad one), over independent prefixes of the oracle policy in the flat world.
    For two prefixes with log odds a and b it is Phi((a - b) / (sigma * sqrt 2)).
    """
    points = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    values = points[:, None] + spread * (2 * points[None, :] - 1)
    return _noise(values.ravel(), auc)


def noise_in_tree(tree: Tree, auc: float) -> float:
    """`noise_for` over the inner prefixes that the policy draws in the tree world (see `Tree.typical_values`)."""
    return _noise(np.array(tree.typical_values()), auc)


def _noise(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", auc: float) -> float:
    values = np.clip(values, _LEAST, 1 - _LEAST)
    odds = np.log(values / (1 - values))
    good, bad = odds[values > _GOOD], odds[values <= _GOOD]
    # Quantiles of each side stand for it: all pairs of the grid would be millions.
    shares = np.linspace(0, 1, 4 * _QUANTILES)
    gaps = (np.quantile(good, shares)[:, None] - np.quantile(bad, shares)[None, :]) / math.sqrt(2)

    def excess(sigma: float) -> float:
        return float(ndtr(gaps / sigma).mean()) - auc

    return float(brentq(excess, 1e-9, _MOST_SIGMA))


def _inside(share: float) -> float:
    """A number of [0, 1) moved into (0, 1), where the inverse of the normal distribution exists."""
    return min(1.0 - 1e-12, max(1e-12, share))
