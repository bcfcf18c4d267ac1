"""Picks siblings that are likely on different sides of the threshold, and far apart, for preference training. Pure."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from pipeline.pickers.base import Pick, Picker, Problem
from pipeline.pickers.greedy import greedy
from pipeline.pickers.settings import PairsConfig

_HOPE = 0.25
"""How much a sibling counts that is not measured, compared with one that is: a pair needs both, and both may yet be picked."""
_REMEMBERED = 10_000
"""Texts whose numbers are kept. Steps of a problem are asked for again and again."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Pairs(Picker):
    """The gain is the expected margin of new pairs: for each sibling that is measured the expectation of the difference of both
    values, if they lie on different sides of the threshold, else 0; a quarter of that for the others. The pairs of a prefix,
    with the sum M of their margins, are worth m (1 - exp(-M / m)) with m = `per_branch`, so that one prefix does not take all.
    A step with the numbers of a measured sibling is worth less."""

    Config = PairsConfig
    settings: PairsConfig

    def picks(self, problem: Problem) -> Iterator[Pick]:
        branches = _Branches(problem, self.settings)
        return greedy(problem.candidates, problem.costs, branches.gain, branches.take, self.settings.least_gain)


_Sides = tuple[float, float, float, float]
"""A row of `trees.posterior.sides`, or a weighted sum of rows."""
_NOTHING: _Sides = (0.0, 0.0, 0.0, 0.0)


@dataclass(slots=True)
class _Siblings:
    """The nodes after one prefix. `sides`: the sum of their sides by weight. `margins`: that of the margins of all pairs.
    `numbers`: those of the measured ones."""

    sides: _Sides = _NOTHING
    margins: float = 0.0
    numbers: set[tuple[str, ...]] = field(default_factory=set)


class _Branches:
    def __init__(self, problem: Problem, settings: PairsConfig) -> None:
        self._nodes = problem.tree.nodes
        self._sides: list[_Sides] = list(map(tuple, problem.sides.tolist()))
        self._settings = settings
        self._measured = problem.measured
        self._siblings: dict[int, _Siblings] = {}
        """By the prefix before them."""

    def gain(self, node: int) -> float:
        mine, siblings = self._sides[node], self._siblings_of(node)
        others = _plus(siblings.sides, mine, -_HOPE)
        there = max(0.0, siblings.margins - _HOPE * _margin(mine, others))
        gain = self._worth(there + _margin(mine, others)) - self._worth(there)
        return max(
            0.0, gain * (self._settings.same_numbers if _numbers(self._nodes[node].text) in siblings.numbers else 1.0)
        )

    def take(self, node: int) -> Iterable[int]:
        mine, siblings = self._sides[node], self._siblings_of(node)
        more = 1.0 - _HOPE
        siblings.margins += more * _margin(mine, _plus(siblings.sides, mine, -_HOPE))
        siblings.sides = _plus(siblings.sides, mine, more)
        siblings.numbers.add(_numbers(self._nodes[node].text))
        return self._nodes[self._nodes[node].parent].children

    def _siblings_of(self, node: int) -> _Siblings:
        parent = self._nodes[node].parent
        found = self._siblings.get(parent)
        if found is None:
            found = self._siblings[parent] = _Siblings()
            for each in self._nodes[parent].children:
                weight = 1.0 if self._measured[each] else _HOPE
                found.margins += weight * _margin(self._sides[each], found.sides)
                found.sides = _plus(found.sides, self._sides[each], weight)
                if self._measured[each]:
                    found.numbers.add(_numbers(self._nodes[each].text))
        return found

    def _worth(self, margins: float) -> float:
        most = self._settings.per_branch
        return most * -math.expm1(-margins / most)


def _plus(sums: _Sides, more: _Sides, weight: float) -> _Sides:
    above, below, mean_above, mean_below = sums
    above_2, below_2, mean_above_2, mean_below_2 = more
    return (
        above + weight * above_2,
        below + weight * below_2,
        mean_above + weight * mean_above_2,
        mean_below + weight * mean_below_2,
    )


def _margin(one: _Sides, other: _Sides) -> float:
    """The expected margin of a pair; of sums of sides, that of all pairs together."""
    above, below, mean_above, mean_below = one
    above_2, below_2, mean_above_2, mean_below_2 = other
    return mean_above * below_2 - above * mean_below_2 + mean_above_2 * below - above_2 * mean_below


@lru_cache(maxsize=_REMEMBERED)
def _numbers(text: str) -> tuple[str, ...]:
    """The numbers of a step, or its text if it has none."""
    return tuple(_NUMBER.findall(text)) or (text,)
