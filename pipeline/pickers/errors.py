"""Picks the places of first errors: steps after which the value is not above the threshold, where it was above it after all
steps before. Pure.

`pickers.located` says how likely each edge of the tree would be located as one, if both its ends were measured. A node locates
errors with its neighbours that are measured. Where a neighbour w is not, the error between both costs the rollouts of w as
well, but only if the node is found on the side that this edge needs. A node with the cost c is worth

    c max over W of (sum of `located` of edges to measured neighbours and to W) / (c + sum over W of P(side) cost(w))

over sets W of neighbours that are candidates: those of the most `located` per cost, while they raise the ratio. So the gain is
an expected number of first errors, and gain per cost that of the node and the neighbours it is measured for.

Not picked for: the binary search along a rollout as a whole, of which single edges may all be unlikely.
"""

from collections.abc import Iterable, Iterator

from pipeline.pickers.base import Pick, Picker, Problem
from pipeline.pickers.greedy import greedy
from pipeline.pickers.located import Expected, expected
from pipeline.pickers.settings import ErrorsConfig
from pipeline.trees.tree import NO_PARENT


class Errors(Picker):
    """See the module."""

    Config = ErrorsConfig
    settings: ErrorsConfig

    def picks(self, problem: Problem) -> Iterator[Pick]:
        return locating(problem, expected(problem), self.settings.least_gain)


def locating(problem: Problem, found: Expected, least: float) -> Iterator[Pick]:
    """The picks that these probabilities lead to."""
    edges = _Edges(problem, found)
    return greedy(problem.candidates, problem.costs, edges.gain, edges.take, least)


class _Edges:
    def __init__(self, problem: Problem, found: Expected) -> None:
        self._nodes = problem.tree.nodes
        self._costs = problem.costs
        self._found = found
        self._measured = list(problem.measured)
        self._open = problem.candidate_set

    def gain(self, node: int) -> float:
        here = self._nodes[node]
        good = self._found.good[node]
        worth, cost = 0.0, self._costs[node]
        more: list[tuple[float, float]] = []
        for other, edge, side in ((here.parent, node, 1.0 - good), *((child, child, good) for child in here.children)):
            located = 0.0 if other == NO_PARENT else self._found.located[edge]
            if located and self._measured[other]:
                worth += located
            elif located and other in self._open:
                more.append((located, side * self._costs[other]))
        for located, price in sorted(more, key=lambda each: each[1] / each[0]):
            if located * cost <= worth * price:
                break
            worth, cost = worth + located, cost + price
        return worth * (self._costs[node] / cost)

    def take(self, node: int) -> Iterable[int]:
        self._measured[node] = True
        here = self._nodes[node]
        return (here.parent, *here.children)
