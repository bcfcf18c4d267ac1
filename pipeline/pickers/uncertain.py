"""Picks the prefixes of which rollouts would teach the most. Pure."""

from collections.abc import Iterator

from pipeline.pickers.base import Pick, Picker, Problem
from pipeline.pickers.settings import UncertainConfig
from pipeline.trees.posterior import Posterior


class Uncertain(Picker):
    """The gain is what N rollouts are expected to take off the variance of the value: for Beta(a, b) with the variance v it is
    v N / (a + b + N)."""

    Config = UncertainConfig

    def picks(self, problem: Problem) -> Iterator[Pick]:
        found = [
            Pick(node, learned_variance(problem.posteriors[node], problem.rollouts)) for node in problem.candidates
        ]
        return iter(sorted(found, key=lambda pick: (-pick.gain / problem.costs[pick.node], pick.node)))


def learned_variance(posterior: Posterior, rollouts: int) -> float:
    """See `Uncertain`."""
    total = posterior.a + posterior.b
    variance = posterior.a * posterior.b / (total * total * (total + 1))
    return variance * rollouts / (total + rollouts)
