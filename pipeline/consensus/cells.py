"""Learned confusions as plain shares of the run's chains, each with its standard error. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.consensus.blocks import OUTCOMES, Outcome
from pipeline.consensus.confusion import Way
from pipeline.consensus.maximum import STEP, Data, Maximum
from pipeline.consensus.model import Model, voters_in
from pipeline.consensus.parameters import ERROR, FREE
from pipeline.core.statistics import Floats

Z = 1.959964
_LEAST = 1e-300


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


def cells_of(data: Data, found: Maximum) -> tuple[Cell, ...]:
    """The confusions on the errors and the chains without one that are expected in this run. Standard errors are by the delta
    method."""
    asked = _asked(data, data.model(found.vector))
    if not asked:
        return ()

    def values(vector: Floats) -> Floats:
        model = data.model(vector)
        return np.concatenate([_shares(model, each) for each in asked])

    here = values(found.vector)
    slopes = np.empty((len(here), len(found.vector)))
    for column in range(len(found.vector)):
        ahead = found.vector.copy()
        ahead[column] += STEP
        slopes[:, column] = (values(ahead) - here) / STEP
    errors = np.sqrt(np.maximum(np.einsum("cv,vw,cw->c", slopes, found.covariance, slopes), 0.0))
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


def _asked(data: Data, model: Model) -> list[_Asked]:
    found = []
    posteriors = [(block, loss, model.posterior(block)) for block, loss in data.blocks]
    for witness in (None, *voters_in([block for block, _ in data.blocks])):
        for outcome in OUTCOMES:
            heard = {}
            for block, loss, posterior in posteriors:
                if block.outcome is outcome and (witness is None or witness in block.votes):
                    chains = loss.chains if witness is None else block.votes[witness].heard.chains
                    heard[block.steps] = _sides(posterior[chains])
            none = witness is not None or data.overview.averages[outcome].says_none
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
    return np.array([said[at] / max(weights[truth], _LEAST) for at, (truth, _) in enumerate(_CELLS)])
