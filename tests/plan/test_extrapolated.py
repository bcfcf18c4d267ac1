"""Ranges of expected costs: order, scale, how often they hold the real cost; and simulated numbers of rollouts."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.analysis.plan.expected import (
    BelievedValues,
    SimulatedCost,
    add,
    inverse,
    mean,
    product,
    scale,
    simulate,
    total,
    widen,
)
from pipeline.core.forecast import Range
from pipeline.core.records import ChainShape
from pipeline.estimators.base import Estimator
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.estimators.tree import Tree, trees_of
from tests.settings import estimator_settings

amounts = st.floats(0.01, 1e6)
problems = st.lists(st.tuples(st.floats(0, 1e4), st.floats(0.1, 100)), min_size=2, max_size=40)


@st.composite
def ranges(draw: st.DrawFn) -> Range:
    low, expected, high = sorted(draw(st.tuples(amounts, amounts, amounts)))
    return Range(low=low, expected=expected, high=high)


def ordered(known: Range) -> bool:
    return 0 <= known.low <= known.expected <= known.high


@given(problems, st.floats(1, 1e6))
def test_a_total_is_in_order_and_scales_with_the_costs(sampled: list[tuple[float, float]], size: float) -> None:
    costs, sizes = [cost for cost, _ in sampled], [size for _, size in sampled]
    found = total(costs, sizes, size=size)
    assert ordered(found)
    assert found.expected == pytest.approx(sum(costs) / sum(sizes) * size)
    twice = total([2 * cost for cost in costs], sizes, size=size)
    assert twice.high == pytest.approx(2 * found.high)


@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=20), st.floats(0.1, 50), st.floats(1, 1e5))
def test_where_cost_follows_from_size_nothing_is_left_open(sizes: list[float], price: float, size: float) -> None:
    found = total([price * each for each in sizes], sizes, size=size)
    assert found.low == pytest.approx(price * size, rel=1e-6)
    assert found.high == pytest.approx(price * size, rel=1e-6)


@given(st.floats(0, 1e5), st.floats(0.1, 100), st.floats(1, 1e5))
def test_one_problem_says_little_and_none_nothing(cost: float, own: float, size: float) -> None:
    found = total([cost], [own], size=size)
    assert (found.low, found.high) == (0.0, 2 * found.expected)
    assert total([], [], size=size) == Range(low=0.0, expected=0.0, high=0.0)


def test_ranges_hold_what_comes() -> None:
    """200 problems with skewed costs, 16 of them sampled: at most 5 of 100 totals lie outside their range."""
    rng = np.random.default_rng(7)
    outside = 0
    for _ in range(400):
        sizes = rng.integers(2, 20, 200).astype(float)
        costs = rng.gamma(2.0, sizes / 2)
        found = total(costs[:16].tolist(), sizes[:16].tolist(), size=sizes.sum())
        outside += rng.gamma(2.0, sizes / 2).sum() not in found
    assert outside <= 20


@given(ranges(), ranges())
def test_products_and_sums_are_in_order(first: Range, second: Range) -> None:
    for found in (product(first, second), add(first, second), inverse(first), widen(first, second.expected)):
        assert ordered(found)
    assert product(first, second).expected == pytest.approx(first.expected * second.expected)
    assert product(first, second).high <= first.high * second.high * (1 + 1e-9)


@given(ranges(), st.floats(0.01, 100))
def test_a_factor_moves_all_of_a_range(known: Range, factor: float) -> None:
    multiplied, moved = product(known, Range(low=factor, expected=factor, high=factor)), scale(known, factor)
    assert math.isclose(multiplied.low, moved.low, rel_tol=1e-9)
    assert math.isclose(multiplied.high, moved.high, rel_tol=1e-9)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(50, 80)), min_size=2, max_size=20))
def test_a_mean_is_that_of_all_together(parts: list[tuple[int, int]]) -> None:
    right, of = [each[0] for each in parts], [each[1] for each in parts]
    found = mean(right, of)
    assert ordered(found)
    assert found.expected == pytest.approx(sum(right) / sum(of))


def trees(problems: int, steps: int) -> list[Tree]:
    return trees_of(
        [
            ChainShape(prefix_ids=tuple(f"{problem}.{step}" for step in range(steps + 1)), outcome=False)
            for problem in range(problems)
        ]
    )


def initial(wanted: Estimator) -> Any:
    return None if wanted.learner is None else wanted.learner.initial()


def spent(name: str, rate: float, *, problems: int = 200, rollouts: int = 8, seed: int = 0) -> list[SimulatedCost]:
    forest = trees(problems, steps=4)
    known = {prefix: BelievedValues(mean=rate, sd=0.0, tokens=10) for tree in forest for prefix in tree.prefix_ids}
    wanted = estimator_for(ESTIMATORS.load(name).adapt(estimator_settings("fixed")))
    rng = np.random.default_rng(seed)
    return simulate(forest, known, rollouts=rollouts, estimator=wanted, state=initial(wanted), rng=rng)


def test_fixed_takes_its_number_of_every_prefix() -> None:
    assert spent("fixed", 0.3, problems=2) == [SimulatedCost(rollouts=32, tokens=320.0)] * 2


def test_first_success_takes_as_many_as_a_cut_geometric_distribution() -> None:
    rate, most = 0.3, 8
    each = sum((1 - rate) ** issued for issued in range(most))
    found = np.mean([one.rollouts for one in spent("first_success", rate)]) / 4
    assert found == pytest.approx(each, rel=0.05)


def test_bisect_takes_two_probes_of_four_steps() -> None:
    assert np.mean([one.rollouts for one in spent("bisect", 1.0)]) == 2
    assert np.mean([one.rollouts for one in spent("bisect", 0.0)]) == 16


def test_pooled_stays_within_what_fixed_takes() -> None:
    assert max(one.rollouts for one in spent("pooled", 0.5, problems=20)) <= 32


@example("fixed", 5e-324, 0.5, 0)
@given(st.sampled_from(list(ESTIMATORS.ours)), st.floats(0, 1), st.floats(0, 0.6), st.integers(0, 100))
def test_whatever_is_believed_a_simulation_ends_within_the_rollouts_there_are(
    name: str, mean: float, sd: float, seed: int
) -> None:
    forest = trees(3, steps=3)
    known = {prefix: BelievedValues(mean=mean, sd=sd, tokens=5) for tree in forest for prefix in tree.prefix_ids}
    wanted = estimator_for(ESTIMATORS.load(name).adapt(estimator_settings("fixed")))
    rng = np.random.default_rng(seed)
    for one in simulate(forest, known, rollouts=4, estimator=wanted, state=initial(wanted), rng=rng):
        assert 0 <= one.rollouts <= 12
        assert one.tokens == 5 * one.rollouts
