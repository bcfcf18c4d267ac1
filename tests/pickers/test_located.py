"""How likely an edge is located as a first error, against a sum over all values of all nodes, and against simulated trees."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binom

from pipeline.pickers import located
from pipeline.pickers.base import Problem
from pipeline.pickers.located import expected
from pipeline.trees.tree import NO_PARENT
from tests.pickers.handmade import at, chain, node, problem, problems, rollouts, tree_of

pytestmark = pytest.mark.slow

_MOST = 5
"""Nodes of a tree whose values are summed over, two bins on either side of the threshold."""


@pytest.fixture(autouse=True)
def few_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(located, "_BINS", 2)


def says_good(of: Problem, place: int, value: float) -> tuple[float, float]:
    """P(labelled good) and P(labelled bad)."""
    issued = of.tree.nodes[place].issued
    if of.measured[place]:
        good = bool(issued.graded) and issued.correct / issued.graded > of.threshold
        return float(good), float(bool(issued.graded) and not good)
    bad = float(binom.cdf(math.floor(of.threshold * of.rollouts + 1e-9), of.rollouts, value))
    return 1 - bad, bad


def summed(of: Problem) -> tuple[dict[int, float], dict[int, float]]:
    """P(located) and P(good) of each node that goes on: the definition."""
    nodes = of.tree.nodes
    inner = [place for place, each in enumerate(nodes) if not each.ended]
    bins = located._bins(of)
    total = 0.0
    errors, good = dict.fromkeys(inner, 0.0), dict.fromkeys(inner, 0.0)
    for chosen in itertools.product(range(len(bins.values)), repeat=len(inner)):
        at_bin = dict(zip(inner, chosen, strict=True))
        weight = 1.0
        for place in inner:
            parent = nodes[place].parent
            weight *= bins.prior[at_bin[place]] if parent == NO_PARENT else bins.steps[at_bin[parent], at_bin[place]]
            last = [nodes[each].passed for each in nodes[place].children if not nodes[each].ended]
            correct = nodes[place].correct - sum(each.correct for each in last)
            graded = nodes[place].graded - sum(each.graded for each in last)
            value = bins.values[at_bin[place]]
            weight *= value**correct * (1 - value) ** (graded - correct)
        total += weight
        for place in inner:
            value = bins.values[at_bin[place]]
            good[place] += weight * says_good(of, place, value)[0]
            before = list(above(of, place))
            if before and not bins.good[at_bin[place]] and all(bins.good[at_bin[each]] for each in before):
                ends = says_good(of, before[0], bins.values[at_bin[before[0]]])[0] * says_good(of, place, value)[1]
                errors[place] += weight * ends
    return {k: v / total for k, v in errors.items()}, {k: v / total for k, v in good.items()}


def above(of: Problem, place: int) -> Iterator[int]:
    while (place := of.tree.nodes[place].parent) != NO_PARENT:
        yield place


@given(of=problems.filter(lambda each: sum(not node.ended for node in each.tree.nodes) <= _MOST))
def test_the_probabilities_are_those_of_all_values_together(of: Problem) -> None:
    found = expected(of)
    errors, good = summed(of)
    for place, each in enumerate(of.tree.nodes):
        assert found.located[place] == pytest.approx(errors.get(place, 0.0), rel=1e-6, abs=1e-12)
        if not each.ended:
            assert found.good[place] == pytest.approx(good[place], rel=1e-6, abs=1e-12)


@given(of=problems)
def test_they_are_probabilities(of: Problem) -> None:
    for each in expected(of):
        assert len(each) == len(of.tree.nodes)
        assert all(-1e-12 <= one <= 1 + 1e-9 for one in each)


def test_the_rollouts_of_a_measured_prefix_decide_its_side() -> None:
    tree = tree_of(
        [chain("a", "b"), chain("a", "c")],
        rollouts(at(), "other", "end", right=7, wrong=1),
        rollouts(at("a"), "other", "end", right=8),
        rollouts(at("a", "b"), "end", wrong=8),
        rollouts(at("a", "c"), "end", right=7, wrong=1),
    )
    found = expected(problem(tree))
    bad, fine = node(tree, "a", "b"), node(tree, "a", "c")
    assert found.good[bad] == 0
    assert found.good[fine] == found.good[node(tree, "a")] == pytest.approx(1)
    assert found.located[fine] == 0 < 0.5 < found.located[bad]


def test_many_rollouts_do_not_underflow() -> None:
    tree = tree_of(
        [chain(*"abc")],
        rollouts(at(), *"abcd", right=4_000, wrong=4_000),
        rollouts(at("a"), *"xyz", wrong=9_000),
        rollouts(at("a", "b"), *"cde", right=9_000),
    )
    with np.errstate(all="raise", under="ignore"):
        found = expected(problem(tree, strength=100.0))
    assert all(math.isfinite(one) for each in found for one in each)
