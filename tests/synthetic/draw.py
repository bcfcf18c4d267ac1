"""Draws from many discrete distributions at once, each in constant time (the alias method: Walker 1977, Vose 1991)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.synthetic.policy import Floats

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Row s is a distribution over T outcomes: a fair draw of one of T columns, which is kept with chance `keep[s, column]`
    and else exchanged for `other[s, column]`."""

    keep: Floats
    other: Integers

    def draw(self, rows: Integers, random: np.random.Generator) -> Integers:
        """One outcome for each entry of `rows`, in its shape."""
        width = self.keep.shape[1]
        places = random.random(rows.shape) * width
        columns = places.astype(np.int64)
        flat = rows * width + columns
        return np.where(places - columns < self.keep.ravel()[flat], columns, self.other.ravel()[flat])


def alias(chances: Floats) -> Alias:
    """The tables of distributions given as rows that add up to 1."""
    tables = [_row(row / row.sum()) for row in chances]
    return Alias(keep=np.stack([keep for keep, _ in tables]), other=np.stack([other for _, other in tables]))


def _row(chances: Floats) -> tuple[Floats, Integers]:
    share = chances * len(chances)
    other = np.arange(len(chances))
    poor = [column for column in other if share[column] < 1]
    rich = [column for column in other if share[column] >= 1]
    keep = np.ones(len(chances))
    while poor and rich:
        column, giver = poor.pop(), rich.pop()
        keep[column], other[column] = share[column], giver
        share[giver] -= 1 - share[column]
        (poor if share[giver] < 1 else rich).append(giver)
    return keep, other
