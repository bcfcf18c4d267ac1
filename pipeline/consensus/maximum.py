"""The most probable parameters, given the evidence of a run: by EM, then by Newton's method. Pure.

EM takes long strides where its steps line up (SQUAREM, Varadhan and Roland 2008). It comes near the maximum soon, but ends
slowly where a parameter is hardly known, such as how independent votes are that are nearly always equal. The rest is Newton's
method, damped (Levenberg 1944). Its score is by Fisher's identity (the expected score of complete data), and the change of the
score by differences is its curvature. The inverse of the curvature at the maximum is the covariance of the parameters: where a
run says little about one, it is that of its prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.consensus.blocks import Block
from pipeline.consensus.model import Loss, Model, Overview
from pipeline.consensus.parameters import Parameters, Priors
from pipeline.core.statistics import Floats

_ROUNDS, _NEWTON_ROUNDS, _TRIES = 30, 40, 12
"""Most rounds of EM, most steps of Newton's method, and how often one of them is tried with more damping."""
_NEAR, _THERE = 1e-2, 1e-9
"""Change of the log-posterior at which EM ends, and at which Newton's method does."""
_DAMPING, _MORE = 1.0, 4.0
"""First damping of Newton's method, and by how much it grows and shrinks."""
STEP = 1e-4
"""Change of the logarithm of a parameter for derivatives by differences."""
_FLAT = 1e-6
"""Least curvature."""
_LEAST = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Data:
    """What is learned from."""

    overview: Overview
    blocks: Sequence[tuple[Block, Loss]]
    priors: Priors

    @property
    def chains(self) -> int:
        return sum(len(block.number) for block, _ in self.blocks)

    def model(self, vector: Floats) -> Model:
        """The model with the parameters whose logarithms are `vector`."""
        return Model(self.priors.parameters(vector), self.overview)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Maximum:
    """`vector` (v,): logarithms of the most probable parameters, see `Priors.vector`. `covariance` (v, v): theirs. `rounds`: of
    EM and of Newton's method."""

    vector: Floats
    covariance: Floats
    rounds: int
    converged: bool


def maximum(data: Data) -> Maximum:
    """The most probable parameters. Without chains they are those of the priors."""
    vector, rounds = _by_em(data) if data.chains else (data.priors.vector(data.priors.start()), 0)
    ways, here, damping = data.priors.directions(), _point(data, vector), _DAMPING
    for _ in range(_NEWTON_ROUNDS):
        rounds += 1
        values, axes = np.linalg.eigh(_curvature(data, vector, here, ways))
        directions = ways @ axes
        slopes, sizes = directions.T @ here.score, np.maximum(np.abs(values), _FLAT)
        gain = float(slopes**2 @ (1 / sizes)) / 2
        if gain < _THERE:
            break
        for _ in range(_TRIES):
            step = directions @ (slopes / (sizes + damping))
            there = _point(data, vector + step)
            if there.log_posterior > here.log_posterior:
                break
            damping = max(damping, _DAMPING) * _MORE
        else:
            break
        vector, here, damping = vector + step, there, damping / _MORE
    return Maximum(
        vector=vector,
        covariance=(directions / sizes) @ directions.T,
        rounds=rounds,
        converged=gain < _NEAR and bool(values.min() > 0),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Point:
    """What is known at a vector: the log-posterior, its derivative, and where a step of EM leads."""

    log_posterior: float
    score: Floats
    next: Floats


def _point(data: Data, vector: Floats) -> _Point:
    priors = data.priors
    model = data.model(vector)
    now, expected = model.parameters, model.expect(data.blocks)
    rows, score = {}, []
    for key, prior in priors.rows.items():
        counts = expected.rows.get(key, 0.0) * (prior > 0) + prior
        rows[key] = counts / counts.sum()
        score.append((counts - counts.sum() * now.rows[key])[prior > 0])
    concentrations = {}
    for key, (shape, rate) in priors.concentrations.items():
        tables, exposure = expected.tables.get(key, 0.0) + shape, expected.exposures.get(key, 0.0) + rate
        concentrations[key] = tables / exposure
        score.append(np.array([tables - now.concentrations[key] * exposure]))
    return _Point(
        log_posterior=expected.log_likelihood + priors.log_density(now),
        score=np.concatenate(score),
        next=priors.vector(Parameters(rows=rows, concentrations=concentrations)),
    )


def _curvature(data: Data, vector: Floats, here: _Point, ways: Floats) -> Floats:
    """(w, w): minus the second derivative of the log-posterior in the directions `ways` (v, w)."""
    found = np.array([ways.T @ (here.score - _point(data, vector + STEP * way).score) / STEP for way in ways.T])
    return np.asarray((found + found.T) / 2)


def _by_em(data: Data) -> tuple[Floats, int]:
    """SQUAREM: from two steps of EM, one long stride, taken back where it lowers the log-posterior. A vector near the maximum,
    and the number of rounds."""
    now, best = data.priors.vector(data.priors.start()), -np.inf
    for done in range(1, _ROUNDS + 1):
        before = _point(data, now)
        middle = _point(data, before.next)
        one, two = before.next, middle.next
        if middle.log_posterior - before.log_posterior < _NEAR and before.log_posterior - best < _NEAR:
            return two, done
        best = before.log_posterior
        first, second = one - now, two - 2 * one + now
        stride = max(np.sqrt(float(first @ first) / max(float(second @ second), _LEAST)), 1.0)
        far = _point(data, now + 2 * stride * first + stride**2 * second)
        now = far.next if far.log_posterior >= middle.log_posterior else two
    return now, _ROUNDS
