"""Picks siblings that are likely on different sides of the threshold, and far apart, for preference training. Pure."""

import math
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scipy.special import betaincc

from pipeline.pickers.base import Pick, Picker, Problem
from pipeline.pickers.greedy import greedy
from pipeline.pickers.settings import PairsConfig
from pipeline.trees.posterior import Posterior

_HOPE = 0.25
"""How much a sibling counts that is not measured, compared with one that is: a pair needs both, and both may yet be picked."""
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


class _Sides(NamedTuple):
    """Of a value V with the threshold t: P(V > t), P(V <= t), E[V; V > t] and E[V; V <= t]."""

    above: float
    below: float
    mean_above: float
    mean_below: float


def _sides(posterior: Posterior, threshold: float) -> _Sides:
    mean, above = posterior.mean, posterior.above(threshold)
    known = not (posterior.a and posterior.b)
    part = mean * (above if known else float(betaincc(posterior.a + 1.0, posterior.b, threshold)))
    return _Sides(above, 1.0 - above, part, mean - part)


class _Branches:
    def __init__(self, problem: Problem, settings: PairsConfig) -> None:
        self._nodes = problem.tree.nodes
        self._sides = [_sides(each, problem.threshold) for each in problem.posteriors]
        self._settings = settings
        self._measured = list(problem.measured)
        self._numbers: dict[int, tuple[str, ...]] = {}

    def gain(self, node: int) -> float:
        siblings = [each for each in self._nodes[self._nodes[node].parent].children if each != node]
        there = more = 0.0
        sums = [0.0] * 4
        repeats = False
        for each in siblings:
            weight = 1.0 if self._measured[each] else _HOPE
            there += weight * self._margin(sums, self._sides[each])
            more += weight * self._margin(self._sides[node], self._sides[each])
            sums = [total + weight * part for total, part in zip(sums, self._sides[each], strict=True)]
            repeats = repeats or (self._measured[each] and self._numbers_of(each) == self._numbers_of(node))
        return (self._worth(there + more) - self._worth(there)) * (self._settings.same_numbers if repeats else 1.0)

    def take(self, node: int) -> Iterable[int]:
        self._measured[node] = True
        return self._nodes[self._nodes[node].parent].children

    def _margin(self, one: Iterable[float], other: Iterable[float]) -> float:
        """The expected margin of a pair; of sums of sides, that of all pairs together."""
        above, below, mean_above, mean_below = one
        above_2, below_2, mean_above_2, mean_below_2 = other
        return mean_above * below_2 - above * mean_below_2 + mean_above_2 * below - above_2 * mean_below

    def _worth(self, margins: float) -> float:
        most = self._settings.per_branch
        return most * -math.expm1(-margins / most)

    def _numbers_of(self, node: int) -> tuple[str, ...]:
        found = self._numbers.get(node)
        if found is None:
            text = self._nodes[node].text
            found = self._numbers[node] = tuple(_NUMBER.findall(text)) or (text,)
        return found
