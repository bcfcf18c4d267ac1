"""Figures on first errors, checked against tables computed by hand and against a plain formula."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.agree.human import ChainPair
from pipeline.analysis.agree.rulings import FirstErrorScores, Ruling, baselines, by_label, by_threshold, first_errors
from pipeline.analysis.settings import Neutral
from pipeline.core.statistics import Interval
from tests.agree.pairs import RESAMPLES, labelled, pair

TABLE = [
    pair(1, [1, 0, 0], source_id="a-1"),  # exact
    pair(2, [1, 0, 0], source_id="a-2"),  # one too early
    pair(0, [1, 1, 0.5], source_id="a-3"),  # nowhere, two too late above 0.5
    pair(1, [1, None, 0], outcome=False, source_id="b-1"),  # uncertain
    pair(-1, [1, 1], source_id="a-4"),  # cleared
    pair(-1, [0.5, 0.5], source_id="b-2"),  # cleared, but not above 0.5
    pair(-1, [0, 1], source_id="b-3"),  # blamed
]


def figures(pairs: list[ChainPair], ruling: Ruling) -> FirstErrorScores:
    subsets = [(found.human.source_id or "").partition("-")[0] or None for found in pairs]
    return first_errors(pairs, subsets, ruling, RESAMPLES)


def of_threshold(pairs: list[ChainPair], threshold: float) -> FirstErrorScores:
    return figures(pairs, by_threshold([found.labelled for found in pairs], threshold))


def test_a_table_by_hand() -> None:
    found = of_threshold(TABLE, 0)
    assert (found.total.erroneous, found.total.correct) == (4, 3)
    assert found.total.found == 1 / 4
    assert found.total.cleared == 2 / 3
    assert found.total.f1.value == pytest.approx(4 / 11)  # 2 * 1/4 * 2/3 / (1/4 + 2/3)
    assert found.by_subset["a"].f1.value == pytest.approx(1 / 2)  # 1/3 and 1/1
    assert found.by_subset["b"].f1.value == 0  # 0/1 and 1/2
    assert found.mean is not None
    assert found.mean.value == pytest.approx(1 / 4)
    assert found.uncertain == 1
    shift = found.shift
    assert (shift.early, shift.exact, shift.late, shift.missed, shift.uncertain) == (1, 1, 0, 1, 1)
    assert shift.mean == -1 / 2
    right = found.right_answers
    assert (right.chains, right.wrong_process, right.found, right.found_exactly) == (6, 3, 2, 1)


def test_another_threshold_by_hand() -> None:
    found = of_threshold(TABLE, 0.5)
    assert found.total.cleared == 1 / 3
    assert found.total.f1.value == pytest.approx(2 / 7)
    assert found.shift.mean == pytest.approx((0 - 1 + 2) / 3)
    assert (found.shift.late, found.shift.missed) == (1, 0)


def test_baselines_by_hand() -> None:
    pairs = [
        pair(1, [0, 0, 0], outcome=False),
        pair(2, [0, 0, 0], outcome=False),
        pair(0, [0], outcome=True),
        pair(-1, [1, 1, 1], outcome=True),
        pair(-1, [1], outcome=None),
    ]
    never, random, random_step, last = (
        figures(pairs, ruling) for ruling in baselines([found.labelled for found in pairs])
    )
    assert (never.total.found, never.total.cleared, never.total.f1.value) == (0, 1, 0)
    assert never.shift.missed == 3
    assert random.total.found == pytest.approx((1 / 4 + 1 / 4 + 1 / 2) / 3)
    assert random.total.cleared == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert random.shift.early == pytest.approx(1 / 4 + 2 / 4)
    assert random.right_answers.found == pytest.approx(1 / 2)
    assert random_step.total.found == pytest.approx((1 / 3 + 1 / 3 + 0) / 3)
    assert random_step.total.cleared == 1 / 2
    assert (random_step.uncertain, last.uncertain) == (1, 1)
    assert last.total.found == 1 / 3
    assert (last.shift.late, last.shift.exact, last.shift.missed, last.shift.mean) == (1, 1, 1, 1 / 2)


def test_an_uncertain_chain_with_a_right_answer_is_no_find() -> None:
    right = of_threshold([pair(1, [None, 1]), pair(1, [0, 1]), pair(-1, [1])], 0).right_answers
    assert (right.chains, right.wrong_process, right.found, right.found_exactly) == (3, 2, 1, 0)


def test_labels_decide_by_their_own_and_neutral_ones_as_asked() -> None:
    chains = [labelled([1, 1, 0], labels=[1, 2, 0]), labelled([1, 0], labels=[1, None])]
    errors = {neutral: [dict(found) for found in by_label(chains, "own", neutral).errors] for neutral in Neutral}
    assert errors == {
        Neutral.good: [{2: 1.0}, {None: 1.0}],
        Neutral.bad: [{1: 1.0}, {None: 1.0}],
        Neutral.ignored: [{None: 1.0}, {None: 1.0}],
    }


chains = st.integers(1, 4).flatmap(
    lambda n: st.builds(
        pair, st.integers(-1, n - 1), st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=n, max_size=n)
    )
)


@given(st.lists(chains, min_size=1, max_size=12))
def test_f1_is_that_of_a_plain_formula(pairs: list[ChainPair]) -> None:
    shown = [next((k for k, value in enumerate(found.labelled.values) if value == 0), -1) for found in pairs]
    hits = [
        (found.human.first_error, guess == found.human.first_error) for found, guess in zip(pairs, shown, strict=True)
    ]
    wrong = [hit for truth, hit in hits if truth != -1]
    right = [hit for truth, hit in hits if truth == -1]
    found = of_threshold(pairs, 0)
    if not wrong or not right:
        assert found.total.f1.value is None
    elif not sum(wrong) or not sum(right):
        assert found.total.f1 == Interval(value=0.0, low=None, high=None)
    else:
        assert found.total.f1.value == pytest.approx(2 / (len(wrong) / sum(wrong) + len(right) / sum(right)))
        if found.total.f1.low is not None:
            assert found.total.f1.high is not None
            assert 0 <= found.total.f1.low < found.total.f1.high <= 1


@given(st.lists(chains, max_size=12))
def test_every_chain_with_an_error_is_put_somewhere(pairs: list[ChainPair]) -> None:
    ours = [found.labelled for found in pairs]
    for ruling in (by_threshold(ours, 0.25), *baselines(ours)):
        found = figures(pairs, ruling)
        shift = found.shift
        total = shift.early + shift.exact + shift.late + shift.missed + shift.uncertain
        assert math.isclose(total, found.total.erroneous, abs_tol=1e-9)
