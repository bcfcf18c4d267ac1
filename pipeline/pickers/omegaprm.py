"""Picks as OmegaPRM does (Luo et al. 2024, arXiv 2406.06592, section 3): a rollout with a wrong answer is selected, and a
binary search along it finds its first error. Pure.

A state s is a measured prefix with 0 < MC(s) < 1, where MC is the share of its own rollouts that are correct, and r one of the
wrong rollouts from it. The selected pair has the largest Q + U, where Q(s, r) = alpha^(1 - MC(s)) beta^(len(r) / L) and
U(s) = c sqrt(sum of all N) / (1 + N(s)); N(s) is the number of searches that s has had. A prefix is lost where none of its
rollouts is correct. The search measures the middle between the last prefix that is not lost and the first one that is.

Ours is different in one thing: the steps are those of the run's splitter, and a rollout is searched between their ends.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pipeline.pickers.base import Pick, Picker, Problem
from pipeline.pickers.settings import OmegaPRMConfig


class OmegaPRM(Picker):
    """See the module. It picks one node at a time: the next one depends on the outcomes at this one."""

    Config = OmegaPRMConfig
    comparable = False
    settings: OmegaPRMConfig

    def picks(self, problem: Problem) -> Iterator[Pick]:
        states = {prefix: at for at, node in enumerate(problem.tree.nodes) for prefix in node.prefix_ids}
        searches = [found for leaf in _wrong_ends(problem) for found in _searches(problem, leaf, states)]
        done: dict[int, int] = {}
        for search in searches:
            if search.middle is None:
                done[search.state] = done.get(search.state, 0) + 1
        total = math.sqrt(sum(done.values()))
        open_ones = [
            (
                self._quality(problem, search) + self.settings.exploration * total / (1 + done.get(search.state, 0)),
                search,
            )
            for search in searches
            if search.middle is not None
        ]
        if open_ones:
            _, best = max(open_ones, key=lambda each: (each[0], -each[1].leaf, -each[1].state))
            assert best.middle is not None
            yield Pick(best.middle, 1.0)

    def _quality(self, problem: Problem, search: "_Search") -> float:
        issued = problem.tree.nodes[search.state].issued
        lost = 1.0 - issued.correct / issued.graded
        return float(self.settings.alpha**lost * self.settings.beta ** (search.tokens / self.settings.length))


class _Search(NamedTuple):
    """A binary search from a state to the end of a wrong rollout. `middle`: what it measures next; None: it is done."""

    state: int
    leaf: int
    tokens: float
    middle: int | None


def _wrong_ends(problem: Problem) -> Iterator[int]:
    return (at for at, node in enumerate(problem.tree.nodes) if node.ended and node.outcome is False)


def _searches(problem: Problem, leaf: int, states: Mapping[str, int]) -> Iterator[_Search]:
    """The search of a wrong rollout from the state at which it was issued. A chain was issued at the bare problem."""
    nodes = problem.tree.nodes
    source = nodes[leaf].source
    state = 0 if source is None else states.get(source.prefix_id, 0)
    if 0 < nodes[state].issued.correct < nodes[state].issued.graded:
        path = [0, *problem.tree.path(leaf)]
        yield _Search(state, leaf, _length(problem, state), _middle(problem, path, path.index(state)))


def _middle(problem: Problem, path: Sequence[int], begin: int) -> int | None:
    nodes, low, high = problem.tree.nodes, begin, len(path) - 1
    while high - low > 1:
        middle = (low + high) // 2
        node = path[middle]
        if not nodes[node].issued.graded:
            return node if node in problem.candidate_set else None
        if nodes[node].issued.correct:
            low = middle
        else:
            high = middle
    return None


def _length(problem: Problem, state: int) -> float:
    issued = problem.tree.nodes[state].issued
    return issued.tokens / max(1, issued.graded + issued.ungraded)
