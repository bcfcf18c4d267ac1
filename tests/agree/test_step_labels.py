"""Figures on single steps, checked against values computed by hand, a plain formula and a published table."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.agree.human import ChainPair
from pipeline.analysis.agree.rulings import Ruling, by_threshold
from pipeline.analysis.agree.steps import StepLabels, reliability, step_labels
from pipeline.analysis.comparison import auc, wilson
from pipeline.core.statistics import Interval
from tests.agree.pairs import RESAMPLES, human, labelled, pair


def of_threshold(pairs: list[ChainPair], threshold: float) -> StepLabels:
    found = step_labels(pairs, by_threshold([found.labelled for found in pairs], threshold), RESAMPLES)
    assert found is not None
    return found


def test_accuracies_by_hand() -> None:
    pairs = [
        pair(2, [1, 0.5, 0, 1]),  # good good bad, and one that nobody knows
        pair(-1, [0, None]),  # good, good
        pair(0, [1, 0]),  # bad
    ]
    found = of_threshold(pairs, 0)
    assert (found.good, found.bad, found.uncertain) == (3, 2, 1)
    assert found.accuracy.value == 3 / 5
    assert found.balanced.value == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert of_threshold(pairs, 0.5).accuracy.value == 2 / 5


def test_ratings_behind_an_error_count() -> None:
    rated = ChainPair(human=human([True, False, True]), labelled=labelled([1, 0, 0]))
    assert of_threshold([rated], 0).accuracy.value == 2 / 3


def test_a_baseline_says_nothing_of_steps() -> None:
    assert step_labels([pair(0, [1])], Ruling(name="never", errors=({-1: 1.0},)), RESAMPLES) is None


def test_without_bad_steps_there_is_no_balance() -> None:
    found = of_threshold([pair(-1, [1, 1])], 0)
    assert found.accuracy.value == 1
    assert found.balanced.value is None


def test_a_curve_by_hand() -> None:
    pairs = [pair(2, [1, 0.3, 0.1]), pair(-1, [0.3, None]), pair(0, [0.3, 1])]
    found = reliability(pairs, 4)
    assert [(bin_.low, bin_.high, bin_.steps, bin_.mean_value, bin_.good) for bin_ in found.bins] == [
        (0, 0.25, 1, 0.1, 0),
        (0.25, 0.5, 3, pytest.approx(0.3), pytest.approx(2 / 3)),
        (0.75, 1, 1, 1, 1),
    ]
    assert (found.steps, found.unvalued) == (5, 1)
    assert found.ece == pytest.approx((0.1 + 3 * (2 / 3 - 0.3) + 0) / 5)
    assert found.auc.value == pytest.approx((1 + 1 + 1 + 0.5 + 1 + 0.5) / 6)


def test_a_value_between_two_bins_is_in_the_upper_one() -> None:
    found = reliability([pair(-1, [index / 100 for index in range(101)])], 100)
    assert [bin_.steps for bin_ in found.bins] == [1] * 99 + [2]
    assert all(bin_.low <= bin_.mean_value + 1e-9 for bin_ in found.bins)


def test_last_steps_that_are_worth_their_answer_can_be_left_out_of_the_auc() -> None:
    right = ChainPair(human=human([True, True]), labelled=labelled([0.2, 1], terminal=True))
    wrong = ChainPair(human=human([True, False]), labelled=labelled([0.4, 0], terminal=True))
    open_ = ChainPair(human=human([False]), labelled=labelled([0.3], terminal=False))
    found = reliability([right, wrong, open_], 10)
    assert found.auc.value == pytest.approx((2 + 1 + 2) / 6)
    assert found.sampled_auc.value == pytest.approx(1 / 2)


def test_a_run_whose_values_are_all_unknown_has_no_curve() -> None:
    found = reliability([pair(0, [None])], 10)
    assert (found.bins, found.ece, found.auc.value, found.unvalued) == ((), None, None, 1)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3)), min_size=1, max_size=30))
def test_auc_is_the_share_of_pairs_in_order(steps: list[tuple[int, bool, int]]) -> None:
    values = np.array([value / 4 for value, _, _ in steps])
    goods = np.array([good for _, good, _ in steps])
    found = auc(values, goods, np.array([index for _, _, index in steps]))
    orders = [(a > b) + (a == b) / 2 for a in values[goods] for b in values[~goods]]
    if not orders:
        assert found.value is None
        return
    assert found.value == pytest.approx(sum(orders) / len(orders))
    assert found.value is not None
    if len({index for _, _, index in steps}) == 1:
        assert found.low is None
    if found.low is not None:
        assert found.high is not None
        assert 0 <= found.low <= found.value + 1e-9
        assert found.value - 1e-9 <= found.high <= 1


def test_the_interval_of_an_auc_is_that_of_its_formula_where_each_step_is_a_chain() -> None:
    draws = np.random.default_rng(3)
    good, bad = draws.normal(1, 1, 40), draws.normal(0, 1, 30)
    found = auc(np.concatenate([good, bad]), np.array([True] * 40 + [False] * 30), np.arange(70))
    above = np.array([(bad < value).mean() for value in good])
    below = np.array([(good > value).mean() for value in bad])
    sd = math.sqrt(above.var(ddof=1) / 40 + below.var(ddof=1) / 30)  # DeLong, DeLong and Clarke-Pearson (1988)
    assert found.value is not None
    assert found.low is not None
    assert found.low == pytest.approx(found.value - 1.96 * sd, abs=0.002)


def test_chains_that_repeat_themselves_do_not_narrow_the_interval_of_an_auc() -> None:
    values, goods = np.array([0.1, 0.4, 0.6, 0.9, 0.3, 0.8]), np.array([False, True, False, True, True, False])
    once = auc(values, goods, np.arange(6))
    twice = auc(np.tile(values, 2), np.tile(goods, 2), np.tile(np.arange(6), 2))
    assert twice.value == pytest.approx(once.value)
    assert twice.low == pytest.approx(once.low)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_is_that_of_a_published_table(successes: int, trials: int, low: float, high: float) -> None:
    """Newcombe (1998), table I, method 3."""
    found = wilson(successes, trials)
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


@pytest.mark.parametrize(("chains", "values"), [([0, 0, 0], [0.9, 0.1, 0.95]), ([0, 1, 0], [0.9, 0.1, 0.8])])
def test_an_auc_of_one_chain_or_without_a_pair_out_of_order_has_no_interval(
    chains: list[int], values: list[float]
) -> None:
    found = auc(np.array(values), np.array([True, False, True]), np.array(chains))
    assert found == Interval(value=1.0, low=None, high=None)
