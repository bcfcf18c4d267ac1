"""What labels of copies of the known chains come to: their error, and whether two ways of labelling agree. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from tests.tiny.compared import Floats, Truth

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Of all prefixes, and its standard error over chains."""

    value: float
    error: float

    def text(self, form: str) -> str:
        return f"{self.value:{form}} +- {self.error:{form}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Arrays (C, P): of every copy of the known prefixes the value, and for it right and graded rollouts; `tokens` of all."""

    value: Floats
    correct: Floats
    graded: Floats
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Labels and what they took: seconds until the engine was there and until the command had ended, and CPU seconds
    of all processes in between.

    `left`: processes that went on when the command had ended.
    """

    labelled: Labelled
    starting: float
    total: float
    cpu_seconds: float
    left: int

    @property
    def labelling(self) -> float:
        return self.total - self.starting


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Right rollouts of each prefix, one way beside the other: chi-square, its degrees of freedom and its tail."""

    chi_square: float
    freedom: int
    tail: float


def jackknifed(figure: Callable[[Mask], float], known: Truth) -> Figure:
    """`figure` takes which of the P prefixes count."""
    chains = np.unique(known.chain)
    rest = np.array([figure(known.chain != each) for each in chains])
    error = np.sqrt((len(chains) - 1) / len(chains) * ((rest - rest.mean()) ** 2).sum())
    return Figure(value=figure(np.ones(len(known.chain), dtype=bool)), error=float(error))


def rmse(values: Floats, known: Truth, kept: Mask) -> float:
    """Against V, of which the truth is an estimate."""
    squares = ((values - known.value)[:, kept] ** 2).mean() - (known.sd[kept] ** 2).mean()
    return float(np.sqrt(squares))


def error(found: Labelled, known: Truth) -> Figure:
    """Root mean square of value - V, with its standard error over chains."""
    return jackknifed(lambda kept: rmse(found.value, known, kept), known)


def expected_error(rollouts: int, known: Truth) -> Figure:
    """The same of c/n for `rollouts` rollouts of every prefix: sqrt of the mean of V (1 - V) / n."""
    variance = known.value * (1 - known.value) / rollouts
    return jackknifed(lambda kept: float(np.sqrt(variance[kept].mean())), known)


def bias(found: Labelled, known: Truth) -> Figure:
    """Mean of value - V, with its standard error over chains."""
    return jackknifed(lambda kept: float((found.value - known.value)[:, kept].mean()), known)


def agreement(one: Labelled, other: Labelled) -> Agreement:
    """Of the same number of rollouts everywhere. Prefixes that were always or never right either way tell nothing."""
    right, others = one.correct.sum(axis=0), other.correct.sum(axis=0)
    graded, others_graded = one.graded.sum(axis=0), other.graded.sum(axis=0)
    pooled = (right + others) / (graded + others_graded)
    variance = pooled * (1 - pooled) * (1 / graded + 1 / others_graded)
    output = variance > 0
    squares = (right / graded - others / others_graded)[output] ** 2 / variance[output]
    freedom = int(output.sum())
    return Agreement(
        chi_square=float(squares.sum()), freedom=freedom, tail=float(stats.chi2.sf(squares.sum(), freedom))
    )


def at_error(wanted: float, runs: Sequence[tuple[float, float]]) -> float:
    """What a run costs at an error, between two of (error, cost), on a line in logarithms; nan beyond all of them."""
    errors, costs = np.log(np.array(sorted(runs))).T
    return float(np.exp(np.interp(np.log(wanted), errors, costs, left=np.nan, right=np.nan)))
