"""What a method made of chains: the estimate for every prefix, and what it paid."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.synthetic.draw import Integers
from tests.synthetic.policy import Floats
from tests.synthetic.rollouts import RIGHT, UNGRADED, Block

NOTHING_KNOWN = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Arrays of the shape (C, K), one entry per prefix before the last: estimates, and what they took of rollouts and
    generated tokens."""

    values: Floats
    rollouts: Integers
    tokens: Integers

    @property
    def rollouts_per_chain(self) -> float:
        return float(self.rollouts.sum(axis=1).mean())

    @property
    def tokens_per_step(self) -> float:
        """A chain of K steps has K labels: K - 1 from the prefixes behind the first step, and its own outcome."""
        return float(self.tokens.mean())

    @property
    def valued(self) -> float:
        """Share of the prefixes that were sampled at all; what is said of the others is implied."""
        return float((self.rollouts > 0).mean())

    def only(self, kept: Integers) -> "Measured":
        """Of some of the chains."""
        return Measured(values=self.values[kept], rollouts=self.rollouts[kept], tokens=self.tokens[kept])

    def rmse(self, truth: Floats) -> float:
        return float(np.sqrt(np.mean((self.values - truth) ** 2)))


def sampled(block: Block, counts: Integers) -> Measured:
    """c/n of the first `counts[chain, prefix]` rollouts; a prefix without any takes over the value of the last that has."""
    asked = np.arange(block.tokens.shape[2]) < counts[:, :, None]
    right = ((block.outcomes == RIGHT) & asked).sum(axis=2)
    graded = ((block.outcomes != UNGRADED) & asked).sum(axis=2)
    return Measured(
        values=carried(np.divide(right, graded, out=np.full(right.shape, np.nan), where=graded > 0)),
        rollouts=counts,
        tokens=(block.tokens * asked).sum(axis=2),
    )


def carried(values: Floats) -> Floats:
    """NaN becomes the value of the nearest prefix before it that has one, NOTHING_KNOWN where none has."""
    known = ~np.isnan(values)
    last = np.maximum.accumulate(np.where(known, np.arange(values.shape[1]), -1), axis=1)
    found = np.take_along_axis(values, np.maximum(last, 0), axis=1)
    return np.where(last >= 0, found, NOTHING_KNOWN)


def right_of(outcomes: npt.NDArray[np.int8], count: int) -> int:
    return int((outcomes[:count] == RIGHT).sum())
