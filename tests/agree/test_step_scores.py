"""AUC, Brier score and ECE of made-up scores are exact; position, length and lowest scores are those of the chains."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.agree.human import ChainPair, goods_until
from pipeline.analysis.agree.steps import by_length, by_position, length_groups, lowest_on_last, step_figures, trends
from pipeline.analysis.comparison import rank_correlation
from tests.agree.pairs import RESAMPLES, human, labelled, pair

SCORES = st.lists(
    st.lists(st.tuples(st.sampled_from([True, False, None]), st.floats(0, 1)), min_size=1, max_size=6),
    min_size=1,
    max_size=8,
)


def chain(*steps: tuple[bool | None, float]) -> ChainPair:
    return ChainPair(human=human([good for good, _ in steps]), labelled=labelled([score for _, score in steps]))


@given(SCORES)
def test_auc_brier_and_ece_are_those_of_their_definitions(chains: list[list[tuple[bool | None, float]]]) -> None:
    found = step_figures([chain(*steps) for steps in chains], 10, RESAMPLES)
    known = [(good, score) for steps in chains for good, score in steps if good is not None]
    good, bad = ([score for is_good, score in known if is_good is wanted] for wanted in (True, False))
    assert (found.good, found.bad) == (len(good), len(bad))
    if good and bad:
        wins = [1.0 if one > other else 0.5 if one == other else 0.0 for one in good for other in bad]
        assert found.auc.value == pytest.approx(sum(wins) / len(wins), abs=1e-9)
    else:
        assert found.auc.value is None
    if not known:
        assert (found.brier.value, found.ece) == (None, None)
        return
    assert found.brier.value == pytest.approx(np.mean([(score - is_good) ** 2 for is_good, score in known]), abs=1e-9)
    always = np.var([is_good for is_good, _ in known])
    assert found.skill.value == (
        pytest.approx(1 - np.mean([(score - is_good) ** 2 for is_good, score in known]) / always, abs=1e-6)
        if always
        else None
    )
    bins: dict[int, list[tuple[bool, float]]] = {}
    for is_good, score in known:
        bins.setdefault(min(math.floor(score * 10 + 1e-9), 9), []).append((is_good, score))
    apart = sum(abs(sum(score - is_good for is_good, score in each)) for each in bins.values())
    assert found.ece == pytest.approx(apart / len(known), abs=1e-9)


def test_scores_with_known_figures() -> None:
    chains = [chain((True, 1.0), (False, 0.0)), chain((True, 0.75), (False, 0.25), (None, 0.9))]
    found = step_figures(chains, 2, RESAMPLES)
    assert found.auc.value == 1
    assert found.brier.value == 2 * 0.25**2 / 4
    assert found.ece == pytest.approx((2 * (1 - 0.875) + 2 * 0.125) / 4)
    assert [(each.low, each.steps, each.good) for each in found.bins] == [(0.0, 2, 0.0), (0.5, 2, 1.0)]


def test_scores_on_the_edges_of_bins_are_in_the_upper_one_and_1_in_the_last() -> None:
    found = step_figures([chain((True, 0.0), (True, 0.3), (True, 0.9), (True, 1.0))], 10, RESAMPLES)
    assert [(round(each.low, 1), each.steps) for each in found.bins] == [(0.0, 1), (0.3, 1), (0.9, 2)]


def test_positions_are_parts_of_the_chain() -> None:
    found = by_position([chain(*((True, score) for score in (0.9, 0.8, 0.7, 0.6, 0.1)))])
    assert [(each.low, each.steps, each.mean) for each in found] == [
        (0.0, 1, 0.9), (0.2, 1, 0.8), (0.4, 1, 0.7), (0.6, 1, 0.6), (0.8, 1, 0.1)
    ]  # fmt: skip
    (middle,) = by_position([chain((True, 0.9))])
    assert (middle.low, middle.high) == (0.4, 0.6)


def test_steps_without_a_human_label_count_for_the_mean_of_a_position_alone() -> None:
    (found,) = by_position([chain((None, 0.2)), chain((True, 0.8)), chain((False, 0.5))])
    assert (found.steps, found.good, found.bad) == (3, 1, 1)
    assert found.mean == pytest.approx(0.5)
    assert (found.mean_good, found.mean_bad) == (0.8, 0.5)
    assert found.auc.value == 1


def test_lengths_group_chains_and_show_the_lowest_score_of_those_without_an_error() -> None:
    chains = [pair(-1, [0.9, 0.7]), pair(0, [0.1, 0.9]), pair(-1, [0.5] * 17), pair(-1, [0.8])]
    assert length_groups(chains) == ["1-2", "1-2", "17+", "1-2"]
    short, long = by_length(chains)
    assert (short.chains, short.first, short.last) == (3, 1, 2)
    assert short.lowest == pytest.approx((0.7 + 0.1 + 0.8) / 3)
    assert short.lowest_correct == pytest.approx((0.7 + 0.8) / 2)
    assert (long.chains, long.last, long.lowest_correct) == (1, None, 0.5)


def test_every_length_has_a_group() -> None:
    chains = [pair(-1, [0.5] * length) for length in range(1, 40)]
    assert sum(each.chains for each in by_length(chains)) == len(chains)
    for length, name in zip(range(1, 40), length_groups(chains), strict=True):
        first, _, last = name.rstrip("+").partition("-")
        assert int(first) <= length <= int(last or length)


def test_a_phantom_last_step_shows_as_lowest_scores_on_the_last_step() -> None:
    rng = np.random.default_rng(0)
    fair = [pair(-1, rng.uniform(0.2, 1, 5).tolist()) for _ in range(400)]
    found = lowest_on_last(fair, RESAMPLES)
    assert found.share.low is not None
    assert found.share.high is not None
    assert found.by_chance == pytest.approx(0.2)
    assert found.share.low < 0.2 < found.share.high
    buggy = [pair(-1, [*rng.uniform(0.2, 1, 4).tolist(), 0.1]) for _ in range(400)]
    assert lowest_on_last(buggy, RESAMPLES).share.value == 1


def test_ties_for_the_lowest_score_count_in_parts_and_single_steps_not_at_all() -> None:
    found = lowest_on_last([pair(-1, [0.5, 0.5]), pair(0, [0.1, 0.9]), pair(-1, [0.3])], RESAMPLES)
    assert (found.chains, found.share.value) == (2, 0.25)
    assert (found.correct_chains, found.correct.value) == (1, 0.5)
    assert lowest_on_last([pair(-1, [0.3])], RESAMPLES).by_chance is None


def test_trends_see_scores_that_fall_along_the_chain_and_with_its_length() -> None:
    chains = [pair(-1, [1 / (at + 1) for at in range(length)]) for length in (2, 4, 6, 8)]
    found = trends(chains)
    assert found.lowest_and_length == pytest.approx(-1)
    assert found.score_and_position is not None
    assert found.score_and_position < -0.8
    assert trends([pair(-1, [0.5, 0.5])]).score_and_position is None


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=20))
def test_rank_correlation_is_spearmans(values: list[tuple[int, int]]) -> None:
    from scipy.stats import spearmanr

    x, y = (np.array(each, dtype=np.float64) for each in zip(*values, strict=True))
    found = rank_correlation(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(float(spearmanr(x, y).statistic), abs=1e-9)


def test_a_first_error_leaves_the_steps_after_it_out_of_the_figures() -> None:
    judged = ChainPair(human=human(goods_until(1, 4)), labelled=labelled([0.9, 0.1, 0.2, 0.3]))
    found = step_figures([judged], 10, RESAMPLES)
    assert (found.good, found.bad) == (1, 1)
