"""Closed forms, checked against enumeration of all subsets."""

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.select.methods import any_right, best_of

Candidates = list[tuple[float | None, bool]]

scores = st.none() | st.sampled_from([0.0, 0.1, 0.5, 1.0])
candidates = st.lists(st.tuples(scores, st.booleans()), min_size=1, max_size=7)


def chosen_by_hand(among: Candidates) -> float:
    ranks = [-1.0 if score is None else score for score, _ in among]
    best = [right for rank, (_, right) in zip(ranks, among, strict=True) if rank == max(ranks)]
    return fmean(best)


@given(candidates, st.data())
def test_best_of_n_is_the_mean_over_all_subsets(of: Candidates, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(of)))
    found = best_of([score for score, _ in of], [right for _, right in of], n)
    assert found == pytest.approx(fmean(chosen_by_hand(list(among)) for among in combinations(of, n)))


@given(candidates, st.data())
def test_any_right_is_the_mean_over_all_subsets(of: Candidates, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(of)))
    found = any_right(sum(right for _, right in of), len(of), n)
    assert found == pytest.approx(fmean(any(right for _, right in among) for among in combinations(of, n)))


@given(candidates, st.data())
def test_the_order_of_candidates_does_not_matter(of: Candidates, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(of)))
    other = data.draw(st.permutations(of))
    one, two = (best_of([score for score, _ in each], [right for _, right in each], n) for each in (of, other))
    assert one == pytest.approx(two)


def test_many_candidates_are_exact() -> None:
    ranked = [i / 1000 for i in range(1000)]
    right = [i == 999 for i in range(1000)]
    assert best_of(ranked, right, 500) == pytest.approx(0.5)
    assert any_right(1, 1000, 500) == pytest.approx(0.5)
