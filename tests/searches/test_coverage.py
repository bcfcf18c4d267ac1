"""Accuracy against coverage, in cases worked out by hand, against enumeration of orders, and in truth."""

from itertools import permutations
from math import ceil
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.searches.figures import COVERAGES, Coverage, coverage
from pipeline.analysis.searches.sentences import trust_sentences
from tests.searches.outcomes import frame_of, searched

Choice = tuple[float | None, bool]


def covered(choices: list[Choice], *coverages: float) -> Coverage:
    of = [searched(f"p{at}", confidence=confidence, right=right) for at, (confidence, right) in enumerate(choices)]
    return coverage(frame_of(of), 0, coverages)


def accuracies(found: Coverage) -> list[float | None]:
    return [point.accuracy.value for point in found.points]


def test_the_most_confident_are_used_first() -> None:
    found = covered([(0.9, True), (0.1, False), (0.7, True), (0.5, False), (0.6, True)], *COVERAGES)
    assert accuracies(found) == pytest.approx([0.6, 0.75, 1, 1, 1])
    assert [point.least for point in found.points] == [0.1, 0.5, 0.6, 0.7, 0.9]
    assert (found.searches, found.trust) == (5, None)


@given(
    st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.9]) | st.none(), st.booleans()), min_size=1, max_size=5), st.data()
)
def test_equal_confidence_is_used_in_random_order(choices: list[Choice], data: st.DataObject) -> None:
    used = data.draw(st.integers(1, len(choices)))
    found = covered(choices, used / len(choices))
    if all(confidence is None for confidence, _ in choices):
        assert not found.points
        return
    orders = [
        sorted(order, key=lambda each: -1.0 if each[0] is None else each[0], reverse=True)
        for order in permutations(choices)
    ]
    wanted = fmean(fmean(right for _, right in order[:used]) for order in orders)
    assert accuracies(found) == pytest.approx([wanted])


@given(st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.9]), st.booleans()), min_size=1, max_size=30))
def test_the_whole_is_the_accuracy_and_every_point_is_a_share(choices: list[Choice]) -> None:
    found = covered(choices, *COVERAGES)
    assert accuracies(found)[0] == pytest.approx(fmean(right for _, right in choices))
    for point in found.points:
        value, low, high = point.accuracy.value, point.accuracy.low, point.accuracy.high
        assert value is not None
        assert -1e-9 <= value <= 1 + 1e-9
        if low is not None and high is not None:
            assert -1e-9 <= low <= high <= 1 + 1e-9
    used = [each for each, _ in sorted(choices, reverse=True)]
    least = [used[ceil(share * len(used) - 1e-9) - 1] for share in COVERAGES]
    assert [point.least for point in found.points] == least


def test_an_interval_is_as_wide_as_theory_has_it() -> None:
    """With confidence that says nothing, a coverage of 0.4 of 1,000 is a sample of 400."""
    rng = np.random.default_rng(2)
    right, confidence = rng.random(1000) < 0.3, rng.random(1000)
    (point,) = covered(list(zip(confidence.tolist(), right.tolist(), strict=True)), 0.4).points
    assert point.accuracy.low is not None
    assert point.accuracy.high is not None
    width = 2 * 1.96 * (0.3 * 0.7 / 400) ** 0.5
    assert point.accuracy.high - point.accuracy.low == pytest.approx(width, rel=0.2)


def test_a_calibrated_confidence_has_the_accuracy_that_it_states() -> None:
    rng = np.random.default_rng(4)
    confidence = rng.random(4000)
    right = rng.random(4000) < confidence
    found = covered(list(zip(confidence.tolist(), right.tolist(), strict=True)), *COVERAGES)
    for share, point in zip(COVERAGES, found.points, strict=True):
        assert point.accuracy.value == pytest.approx(1 - share / 2, abs=0.03)


def test_a_share_that_all_have_is_not_sure() -> None:
    """24 of 24 say that at least 86 % are right (Wilson)."""
    all_right: list[Choice] = [(0.9, True)] * 24
    (point,) = covered(all_right, 1.0).points
    assert (point.accuracy.value, point.accuracy.high) == (1, 1)
    assert point.accuracy.low == pytest.approx(24 / (24 + 1.959964**2))
    (half,) = covered([*all_right[:12], *((0.1, right) for _, right in all_right[12:])], 0.5).points
    assert half.accuracy.low == pytest.approx(12 / (12 + 1.959964**2))


def test_searches_of_one_problem_are_resampled_together() -> None:
    rng = np.random.default_rng(6)
    problems = [(f"p{at}", bool(rng.random() < 0.5)) for at in range(200)]
    one = [searched(problem, confidence=0.5, right=right) for problem, right in problems]
    four = [each for each in one for _ in range(4)]
    widths = [
        (point.accuracy.high or 0) - (point.accuracy.low or 0)
        for of in (one, four)
        for point in coverage(frame_of(of), 0, [1.0]).points
    ]
    assert widths[0] == pytest.approx(widths[1], rel=0.1)


def test_without_a_claim_or_a_confidence_there_is_no_curve() -> None:
    assert coverage(frame_of([searched("a", confidence=0.5, right=None)]), 0).points == ()
    found = coverage(frame_of([searched("a", right=True), searched("b", right=False)]), 0)
    assert (found.points, found.searches) == ((), 2)
    assert coverage(frame_of([]), 0) == Coverage(searches=0, points=(), trust=None)


def test_what_is_trusted_is_counted_over_all_searches() -> None:
    of = [
        searched("a", confidence=0.97, trusted=True, right=True),
        searched("b", confidence=0.96, trusted=True, right=False),
        searched("c", confidence=0.99, trusted=True, known=False),
        searched("d", confidence=0.5, trusted=False, right=True),
        searched("e", trusted=False, right=False, has_choice=False),
    ]
    trust = coverage(frame_of(of), 0).trust
    assert trust is not None
    assert (trust.searches, trust.trusted, trust.claimed) == (5, 3, 2)
    assert (trust.share.value, trust.accuracy.value, trust.accuracy_of_others.value) == pytest.approx((0.6, 0.5, 0.5))
    said = list(trust_sentences(trust, 0.95, calibrated=False))
    assert "search.accept=0.95: 60 %" in said[0]
    assert "of 5 searches are trusted" in said[0]
    assert said[1].startswith("of 2 trusted choices that can be graded 50 %")
    assert len(said) == 2


@pytest.mark.parametrize(("right", "calibrated", "warned"), [(60, True, True), (60, False, False), (96, True, False)])
def test_a_promise_that_is_not_kept_is_said(right: int, calibrated: bool, warned: bool) -> None:
    of = [searched(f"p{at}", confidence=0.97, trusted=True, right=at < right) for at in range(100)]
    trust = coverage(frame_of(of), 0).trust
    assert trust is not None
    said = " ".join(trust_sentences(trust, 0.95, calibrated=calibrated))
    assert ("less than search.accept=0.95 promises" in said) == warned


def test_trust_without_a_known_answer_claims_nothing() -> None:
    trust = coverage(frame_of([searched("a", confidence=0.99, trusted=True, known=False)]), 0).trust
    assert trust is not None
    assert list(trust_sentences(trust, None, calibrated=True)) == [
        "100 % (21-100) of 1 search are trusted",
        "accuracy is claimed for none of the trusted ones",
    ]
