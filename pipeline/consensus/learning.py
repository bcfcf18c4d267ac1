"""Learns from a run how much Monte Carlo and each witness are worth: the most probable parameters by EM. Pure.

EM takes long strides where its steps line up (SQUAREM, Varadhan and Roland 2008). Standard errors are those of the curvature of
the posterior at its maximum: the change of the score (Fisher's identity: the expected score of complete data) by central
differences. Where the run says little about a parameter, its standard error is that of its prior.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pipeline.consensus.blocks import OUTCOMES, Block, Outcome, blocks_of
from pipeline.consensus.confusion import Way
from pipeline.consensus.evidence import ChainEvidence
from pipeline.consensus.model import Average, Habits, Loss, Model, habits_in, loss_in
from pipeline.consensus.parameters import (
    ERROR,
    FREE,
    WITNESS,
    Parameters,
    Priors,
    priors_for,
)
from pipeline.consensus.places import Habit
from pipeline.core.statistics import Floats

MOST_CELLS = 20_000 * 81
"""As many chains are learned from as have this sum of (K + 1)^2: 20,000 of 8 steps."""
_ROUNDS = 200
_ENOUGH = 1e-7
"""Change of the log-posterior, for each chain, at which EM ends."""
_STEP = 1e-4
_FLAT = 1e-6
"""Least curvature, of the sum over chains and prior, that is one."""
Z = 1.959964


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a run teaches. `parameters`, `habits`: of the model. `cells`: its confusions in plain shares. `chains`: of the run;
    `learned_from`: of them, those that were used."""

    parameters: Parameters
    habits: Habits
    cells: tuple["Cell", ...]
    chains: int
    learned_from: int
    iterations: int
    converged: bool

    @property
    def model(self) -> Model:
        return Model(self.parameters, self.habits)

    @property
    def says_one_thing(self) -> Mapping[str, str]:
        """The witnesses that say the same of nearly all chains, and what: they cannot tell chains apart."""
        return self.habits.one_thing

    @property
    def witnesses(self) -> frozenset[str]:
        """The names of the witnesses that it knows."""
        return frozenset(key[1] for key in self.parameters.rows if key[0] == WITNESS)

    def as_dict(self) -> dict[str, Any]:
        """In the form of JSON."""
        return {
            "rows": [[*key, row.tolist()] for key, row in self.parameters.rows.items()],
            "concentrations": [[*key, value] for key, value in self.parameters.concentrations.items()],
            "averages": {str(outcome): asdict(average) for outcome, average in self.habits.averages.items()},
            "habits": {name: asdict(habit) for name, habit in self.habits.habits.items()},
            "one_thing": dict(self.habits.one_thing),
            "cells": [asdict(cell) for cell in self.cells],
            "chains": self.chains,
            "learned_from": self.learned_from,
            "iterations": self.iterations,
            "converged": self.converged,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Learned":
        """What `as_dict` made, the same to the last digit. Raises KeyError, TypeError or ValueError for anything else."""
        averages = {
            Outcome(outcome): Average(**{**average, "parts": tuple(average["parts"])})
            for outcome, average in stored["averages"].items()
        }
        return cls(
            parameters=Parameters(
                rows={tuple(key): np.array(row) for *key, row in stored["rows"]},
                concentrations={tuple(key): float(value) for *key, value in stored["concentrations"]},
            ),
            habits=Habits(
                averages=averages,
                habits={name: Habit(**habit) for name, habit in stored["habits"].items()},
                one_thing=dict(stored["one_thing"]),
            ),
            cells=tuple(
                Cell(**{**cell, "outcome": Outcome(cell["outcome"]), "way": Way(cell["way"])})
                for cell in stored["cells"]
            ),
            chains=int(stored["chains"]),
            learned_from=int(stored["learned_from"]),
            iterations=int(stored["iterations"]),
            converged=bool(stored["converged"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a learned confusion: of the run's chains with this outcome and an error (`truth` "error") or none ("free"),
    the share of which `witness` says `way`, with its standard error.

    `witness`: None for Monte Carlo. Ways: exact, early, late and none; none and alarm. `chains`: how many chains with this
    outcome and this truth are expected among those that it was learned from.
    """

    witness: str | None
    outcome: Outcome
    truth: str
    way: Way
    value: float
    error: float
    chains: float

    @property
    def low(self) -> float:
        """The lower end of its 95 % interval."""
        return max(0.0, self.value - Z * self.error)

    @property
    def high(self) -> float:
        """The upper end of its 95 % interval."""
        return min(1.0, self.value + Z * self.error)


def learn(evidence: Sequence[ChainEvidence], most_cells: int = MOST_CELLS) -> Learned:
    """The parameters that are most probable, given the evidence. Deterministic, and the same in any order of the chains.
    Without chains they are those of the priors. Raises ValueError for impossible evidence."""
    blocks = blocks_of(evidence, most_cells)
    habits = habits_in(blocks)
    data = _Data(habits=habits, blocks=[(block, loss_in(block, habits)) for block in blocks])
    priors = priors_for(sorted(habits.habits), sorted({name for block in blocks for name in block.verdicts}))
    vector, iterations, converged = _maximum(data, priors)
    return Learned(
        parameters=priors.parameters(vector),
        habits=habits,
        cells=_cells(data, priors, vector),
        chains=len(evidence),
        learned_from=data.chains,
        iterations=iterations,
        converged=converged,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Data:
    """What is learned from."""

    habits: Habits
    blocks: Sequence[tuple[Block, Loss]]

    @property
    def chains(self) -> int:
        return sum(len(block.number) for block, _ in self.blocks)

    def model(self, parameters: Parameters) -> Model:
        return Model(parameters, self.habits)


def _score(data: _Data, priors: Priors, vector: Floats) -> Floats:
    """The derivative of the log-posterior by the vector."""
    now = priors.parameters(vector)
    expected = data.model(now).expect(data.blocks)
    parts = []
    for key, prior in priors.rows.items():
        counts = (expected.rows.get(key, 0.0) + prior)[prior > 0]
        parts.append(counts - counts.sum() * now.rows[key][prior > 0])
    rest = [
        expected.tables.get(key, 0.0) + shape - now.concentrations[key] * (expected.exposures.get(key, 0.0) + rate)
        for key, (shape, rate) in priors.concentrations.items()
    ]
    return np.concatenate([*parts, rest])


def _covariance(data: _Data, priors: Priors, vector: Floats) -> Floats:
    """Of the vector: the inverse of the curvature, without the directions in which it only scales a row."""
    size = len(vector)
    here = _score(data, priors, vector)
    curvature = np.empty((size, size))
    for at in range(size):
        ahead = vector.copy()
        ahead[at] += _STEP
        curvature[at] = (here - _score(data, priors, ahead)) / _STEP
    values, directions = np.linalg.eigh((curvature + curvature.T) / 2)
    inverse = np.divide(1.0, values, out=np.zeros(size), where=values > _FLAT * np.abs(values).max())
    return np.asarray((directions * inverse) @ directions.T)


def _cells(data: _Data, priors: Priors, vector: Floats) -> tuple[Cell, ...]:
    """The confusions on the errors and the chains without one that are expected in this run."""
    asked = _asked(data, data.model(priors.parameters(vector)))
    if not asked:
        return ()
    covariance = _covariance(data, priors, vector)

    def values(at: Floats) -> Floats:
        model = data.model(priors.parameters(at))
        return np.concatenate([_shares(model, each) for each in asked])

    here = values(vector)
    slopes = np.empty((len(here), len(vector)))
    for column in range(len(vector)):
        ahead = vector.copy()
        ahead[column] += _STEP
        slopes[:, column] = (values(ahead) - here) / _STEP
    errors = np.sqrt(np.maximum(np.einsum("cv,vw,cw->c", slopes, covariance, slopes), 0.0))
    wanted = [(each, truth, way) for each in asked for truth, way in _CELLS]
    return tuple(
        Cell(
            witness=each.witness,
            outcome=each.outcome,
            truth=truth,
            way=way,
            value=float(value),
            error=float(error),
            chains=each.weights[truth],
        )
        for (each, truth, way), value, error in zip(wanted, here, errors, strict=True)
        if each.weights[truth] and each.possible(way)
    )


_CELLS = (
    (ERROR, Way.EXACT),
    (ERROR, Way.EARLY),
    (ERROR, Way.LATE),
    (ERROR, Way.NONE),
    (FREE, Way.NONE),
    (FREE, Way.ALARM),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Asked:
    """Of whom cells are asked. `chains`: by number of steps, how many chains with an error and without one are expected.
    `none`: whether "no error" can be named."""

    witness: str | None
    outcome: Outcome
    chains: Mapping[int, tuple[float, float]]
    none: bool = True

    @property
    def weights(self) -> Mapping[str, float]:
        """Expected chains with an error and without."""
        return {
            ERROR: sum(errors for errors, _ in self.chains.values()),
            FREE: sum(free for _, free in self.chains.values()),
        }

    def possible(self, way: Way) -> bool:
        return self.none or way is not Way.NONE


def _asked(data: _Data, model: Model) -> list[_Asked]:
    found = []
    posteriors = [(block, loss, model.posterior(block)) for block, loss in data.blocks]
    for witness in (None, *data.habits.habits):
        for outcome in OUTCOMES:
            heard = {}
            for block, loss, posterior in posteriors:
                if block.outcome is outcome and (witness is None or witness in block.votes):
                    chains = loss.chains if witness is None else block.votes[witness].heard.chains
                    heard[block.steps] = _sides(posterior[chains])
            none = witness is not None or data.habits.averages[outcome].says_none
            found.append(_Asked(witness=witness, outcome=outcome, chains=heard, none=none))
    return [each for each in found if any(each.weights.values())]


def _sides(posterior: Floats) -> tuple[float, float]:
    free = float(posterior[:, -1].sum())
    return float(posterior.sum()) - free, free


def _shares(model: Model, asked: _Asked) -> Floats:
    """The cells in the order of _CELLS. Errors are where the model has them, by the length of the chain."""
    said = np.zeros(len(_CELLS))
    for steps, (errors, free) in asked.chains.items():
        table = model.table(asked.witness, asked.outcome, steps)
        named = table[:-1] * (errors * model.places(steps))[:, None]
        on_steps = named[:, :-1]
        said += [
            float(np.trace(on_steps)),
            float(np.tril(on_steps, -1).sum()),
            float(np.triu(on_steps, 1).sum()),
            float(named[:, -1].sum()),
            free * float(table[-1, -1]),
            free * float(table[-1, :-1].sum()),
        ]
    weights = asked.weights
    return np.array([said[at] / max(weights[truth], 1e-300) for at, (truth, _) in enumerate(_CELLS)])


def _step(data: _Data, priors: Priors, vector: Floats) -> tuple[Floats, float]:
    """One step of EM: the next vector, and the log-posterior of this one."""
    now = priors.parameters(vector)
    expected = data.model(now).expect(data.blocks)
    rows = {key: expected.rows.get(key, 0.0) * (prior > 0) + prior for key, prior in priors.rows.items()}
    concentrations = {
        key: (expected.tables.get(key, 0.0) + shape) / (expected.exposures.get(key, 0.0) + rate)
        for key, (shape, rate) in priors.concentrations.items()
    }
    found = Parameters(rows={key: row / row.sum() for key, row in rows.items()}, concentrations=concentrations)
    return priors.vector(found), expected.log_likelihood + _log_prior(priors, now)


def _log_prior(priors: Priors, now: Parameters) -> float:
    rows = sum(float(prior[prior > 0] @ np.log(now.rows[key][prior > 0])) for key, prior in priors.rows.items())
    return rows + sum(
        shape * float(np.log(now.concentrations[key])) - rate * now.concentrations[key]
        for key, (shape, rate) in priors.concentrations.items()
    )


def _maximum(data: _Data, priors: Priors) -> tuple[Floats, int, bool]:
    """SQUAREM: from two steps of EM, one long stride, taken back where it lowers the log-posterior."""
    now = priors.vector(priors.start())
    chains = data.chains
    if not chains:
        return now, 0, True
    best = -np.inf
    for done in range(1, _ROUNDS + 1):
        one, before = _step(data, priors, now)
        two, middle = _step(data, priors, one)
        if middle - before < _ENOUGH * chains and before - best < _ENOUGH * chains:
            return two, done, True
        best = before
        first, second = one - now, two - 2 * one + now
        stride = -np.sqrt(float(first @ first) / max(float(second @ second), _FLAT**2))
        stride = min(stride, -1.0)
        far = now - 2 * stride * first + stride**2 * second
        after, there = _step(data, priors, far)
        now = after if there >= middle else two
    return now, _ROUNDS, False
