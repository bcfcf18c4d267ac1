"""Chains, rollouts and kernels for the tests of the pooled estimator."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from random import Random

import numpy as np

from pipeline.config.choices import Interval
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, Counts, Trials
from pipeline.estimators.pooled.grid import GRID, POINTS
from pipeline.estimators.pooled.kernel import Kernel
from pipeline.estimators.pooled.reproduction import ANGLES, KINDS
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.settings import PooledConfig
from pipeline.estimators.tree import Floats, Tree
from tests import strategies  # noqa: F401  its profile: no deadlines

Outcome = bool | None
Engine = Callable[[str, int], tuple[Outcome, int]]
"""Prefix and issue index -> outcome of that rollout, and its tokens."""

POOLED = PooledConfig(interval=Interval.posterior)


def chain(*prefixes: str, outcome: bool | None = True, prices: Sequence[float] = ()) -> ChainShape:
    """The prefix ids of a chain, without the complete chain if it has an outcome."""
    ids = prefixes if outcome is None else (*prefixes, f"{prefixes[-1]} end")
    return ChainShape(prefix_ids=ids, outcome=outcome, prices=tuple(prices))


def straight(name: str, steps: int, outcome: bool | None = True, prices: Sequence[float] = ()) -> ChainShape:
    return chain(*(f"{name}{step}" for step in range(steps)), outcome=outcome, prices=prices)


def trials(*rounds: Sequence[Outcome], tokens: int = 0) -> Trials:
    outcomes = tuple(outcome for together in rounds for outcome in together)
    graded = [outcome for outcome in outcomes if outcome is not None]
    return Trials(
        outcomes=outcomes,
        rounds=tuple(len(together) for together in rounds),
        counts=Counts(correct=sum(graded), graded=len(graded), ungraded=len(outcomes) - len(graded), tokens=tokens),
    )


def seen(correct: int, graded: int, tokens: int = 0) -> Trials:
    return trials([True] * correct + [False] * (graded - correct), tokens=tokens)


def with_round(before: Trials, outcomes: Sequence[Outcome], tokens: int) -> Trials:
    begun = np.cumsum((0, *before.rounds)).tolist()
    rounds = [before.outcomes[start : start + size] for start, size in zip(begun, before.rounds, strict=False)]
    return trials(*rounds, outcomes, tokens=before.counts.tokens + tokens)


def sampled(have: Mapping[str, Trials], asked: Sequence[Mapping[str, int]], engine: Engine) -> dict[str, Trials]:
    grown = dict(have)
    for prefix, more in (item for each in asked for item in each.items()):
        before = have.get(prefix, Trials())
        drawn = [engine(prefix, len(before.outcomes) + place) for place in range(more)]
        grown[prefix] = with_round(before, [outcome for outcome, _ in drawn], sum(tokens for _, tokens in drawn))
    return grown


def played(
    trees: Sequence[Tree], engine: Engine, config: EstimatorConfig, kernel: Kernel, rollouts: int = 8
) -> dict[str, Trials]:
    """All rounds of a unit, one after the other, until no rollout is requested."""
    have: dict[str, Trials] = {}
    for rounds in count():
        asked = estimator_for(config).next_rollouts(trees, have, rollouts, kernel)
        if not any(asked):
            return have
        assert rounds < 200
        have = sampled(have, asked, engine)
    raise AssertionError


def policy(values: Mapping[str, float], seed: int = 0, tokens: int = 10) -> Engine:
    return lambda prefix, index: (Random(f"{seed} {prefix} {index}").random() < values[prefix], tokens)


def kernel_of(steps: Floats, chains: int = 200) -> Kernel:
    """A kernel from `chains` chains of ten steps with uniform first values and transitions `steps` (POINTS, POINTS)."""
    even = np.full(POINTS, 1 / POINTS)
    return Kernel(
        start=chains * even,
        steps=chains * 10 / POINTS * steps,
        last=chains * even * np.stack([1 - GRID, GRID]),
        reproduced=np.zeros((KINDS, ANGLES)),
        chains=chains,
    )


CONSTANT = kernel_of(np.eye(POINTS))
INDEPENDENT = kernel_of(np.full((POINTS, POINTS), 1 / POINTS), chains=20_000)
_NEAR = np.exp(-0.5 * ((GRID[:, None] - GRID) / 0.08) ** 2)
SMOOTH = kernel_of(_NEAR / _NEAR.sum(axis=1, keepdims=True))
JUMPS = kernel_of(0.8 * np.eye(POINTS) + 0.2 / POINTS)
