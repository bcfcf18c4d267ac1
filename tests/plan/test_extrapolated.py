"""plan.json, ranges of expected costs (order, scale, how often they hold the real cost), and simulated numbers of rollouts."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
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
from pipeline.core.forecast import (
    Cost,
    Forecast,
    Limit,
    Pilot,
    PlannedWork,
    Range,
    StartCost,
    decode_forecast,
    encode_forecast,
)
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


numbers = st.floats(0, 1e12)
counts = st.integers(0, 10**9)
any_ranges = st.builds(Range, low=numbers, expected=numbers, high=numbers)
costs = st.builds(
    Cost,
    estimator=st.text(max_size=9),
    rollouts=any_ranges,
    tokens=any_ranges,
    device_hours=st.none() | any_ranges,
    wall_hours=st.none() | any_ranges,
    money=st.none() | any_ranges,
)
forecasts = st.builds(
    Forecast,
    made_at=st.text(max_size=20),
    identity=st.dictionaries(
        st.text(max_size=9), st.none() | st.text(max_size=9) | st.integers() | st.booleans(), max_size=3
    ),
    settings=st.dictionaries(st.text(max_size=9), st.none() | st.integers(), max_size=3),
    planned=st.builds(
        PlannedWork,
        rejects=st.dictionaries(st.text(max_size=9), counts, max_size=3),
        unfit=st.lists(st.text(max_size=20), max_size=3).map(tuple),
        **dict.fromkeys(
            ("rows", "used", "rejected", "problems", "chains", "steps", "prefixes", "prompt_tokens"), counts
        ),
        too_long=st.none() | counts,
        distinct_prompt_tokens=counts,
        context=st.none() | counts,
    ),
    pilot=st.builds(
        Pilot,
        measured=st.booleans(),
        completion_tokens=any_ranges,
        success_rate=any_ranges,
        tokens_per_second=st.none() | any_ranges,
    ),
    gpus=st.integers(1, 1000),
    gpu_hour_price=st.none() | numbers,
    starting=st.builds(StartCost, device_hours=any_ranges, wall_hours=any_ranges, money=st.none() | any_ranges),
    cost=costs,
    others=st.lists(costs, max_size=3).map(tuple),
    limit=st.builds(Limit, tokens=st.none() | counts, device_hours=st.none() | numbers),
)


@given(forecasts)
def test_a_plan_is_read_back_as_it_was(forecast: Forecast) -> None:
    assert decode_forecast(encode_forecast(forecast)) == forecast


@given(forecasts, st.integers(0, 30), st.binary(max_size=40))
def test_what_is_no_plan_is_a_value_error(forecast: Forecast, cut: int, noise: bytes) -> None:
    data = encode_forecast(forecast)
    for broken in (data[: cut * len(data) // 31], noise, b"[1]", b'{"stepvalue_plan": 2}'):
        with pytest.raises(ValueError, match=r"\S"):
            decode_forecast(broken)


EDITS: dict[str, object] = {
    "limit: tokens": "500",
    "limit: device_hours": "x",
    "limit: tokens ": -5,
    "limit: tokens  ": True,
    "limit: tokens   ": 1.5,
    "identity": 3,
    "cost": [],
    "cost: rollouts: low": "much",
    "others": {},
    "planned: unfit": [1],
    "gpus": None,
}


@settings(max_examples=5)
@given(forecasts)
@pytest.mark.parametrize("place", list(EDITS))
def test_what_a_person_has_spoilt_is_named(place: str, forecast: Forecast) -> None:
    values = json.loads(encode_forecast(forecast))
    *parts, last = place.strip().split(": ")
    inner = values
    for part in parts:
        inner = inner[part]
    inner[last] = EDITS[place]
    with pytest.raises(ValueError, match=place.strip().split(": ")[-1]):
        decode_forecast(json.dumps(values).encode())


def test_a_limit_is_a_number_and_no_other_part() -> None:
    with pytest.raises(ValueError, match="the plan lacks the part 'cost'"):
        decode_forecast(b'{"stepvalue_plan": 1}')
    with pytest.raises(ValueError, match="does not know"):
        decode_forecast(b'{"stepvalue_plan": 1, "extra": 1}')
