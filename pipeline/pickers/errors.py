"""Picks the places of first errors: steps after which the value is lost, where it was not lost before. Pure."""

from collections.abc import Iterable, Iterator

from pipeline.pickers.base import Pick, Picker, Problem
from pipeline.pickers.greedy import greedy
from pipeline.pickers.settings import ErrorsConfig
from pipeline.trees.tree import NO_PARENT

_HOPE = 0.25
"""How much an edge counts whose other end is not measured: it takes both ends to locate an error."""


class Errors(Picker):
    """An error is located where a prefix is measured as good and the same with one more step as bad. The gain of a node is what
    the value is expected to fall at the errors that its rollouts locate: as the bad end of the edge from its parent, and as the
    good end of the edges to its children. A few rollouts show a large fall, and not a small one."""

    Config = ErrorsConfig
    settings: ErrorsConfig

    def picks(self, problem: Problem) -> Iterator[Pick]:
        edges = _Edges(problem)
        return greedy(problem.candidates, problem.costs, edges.gain, edges.take, self.settings.least_gain)


class _Edges:
    def __init__(self, problem: Problem) -> None:
        self._nodes = problem.tree.nodes
        self._above = problem.above
        self._mean = [each.mean for each in problem.posteriors]
        self._measured = list(problem.measured)

    def gain(self, node: int) -> float:
        here = self._nodes[node]
        found = self._error(here.parent, node, self._weight(here.parent))
        return found + sum(self._error(node, child, self._weight(child)) for child in here.children)

    def take(self, node: int) -> Iterable[int]:
        self._measured[node] = True
        here = self._nodes[node]
        return (here.parent, *here.children)

    def _error(self, before: int, after: int, weight: float) -> float:
        """The probability that the step between two nodes is an error, times the expected fall."""
        return (
            0.0
            if before == NO_PARENT
            else weight
            * self._above[before]
            * (1.0 - self._above[after])
            * max(0.0, self._mean[before] - self._mean[after])
        )

    def _weight(self, node: int) -> float:
        return 1.0 if self._measured[node] else _HOPE
