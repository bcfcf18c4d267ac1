"""Votes and closed forms against a count by hand over all subsets, intervals against theory, and methods beside each other."""

import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from math import comb
from statistics import fmean

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.comparison import bootstrap_means
from pipeline.analysis.select.methods import MAX_SUBSETS, Method, any_right, best_of, compare_methods, subsets_of, vote
from pipeline.core.statistics import Interval
from pipeline.graders.answer_groups import answer_groups

Voter = tuple[int, bool, float]

voters = st.lists(
    st.tuples(st.integers(-1, 2), st.booleans(), st.sampled_from([0.0, 0.25, 0.5, 1.0])), min_size=1, max_size=7
)


def voted_by_hand(among: list[Voter]) -> float:
    ballots = defaultdict(list)
    for group, right, weight in among:
        if group >= 0:
            ballots[group].append((right, weight))
    if not ballots:
        return 0.0
    sums = {group: sum(weight for _, weight in given) for group, given in ballots.items()}
    winners = [group for group in ballots if sums[group] == max(sums.values())]
    return fmean(fmean(right for right, _ in ballots[group]) for group in winners)


@given(voters, st.data())
def test_a_vote_of_n_is_the_mean_over_all_subsets(of: list[Voter], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(of)))
    subsets = subsets_of(len(of), n, np.random.default_rng(0))
    groups, right, weights = (np.array(column) for column in zip(*of, strict=True))
    found = vote(groups, right, weights, subsets)
    assert found == pytest.approx(fmean(voted_by_hand(list(among)) for among in combinations(of, n)))


@given(st.integers(1, 20), st.data())
def test_subsets_are_all_of_them_or_many_of_the_right_size(count: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, count))
    subsets = subsets_of(count, n, np.random.default_rng(3))
    assert subsets.shape == (min(comb(count, n), MAX_SUBSETS), count)
    assert (subsets.sum(axis=1) == n).all()
    if comb(count, n) <= MAX_SUBSETS:
        assert len({tuple(row) for row in subsets.tolist()}) == comb(count, n)


def test_drawn_subsets_take_every_candidate_as_often() -> None:
    taken = np.concatenate([subsets_of(16, 8, np.random.default_rng(seed)) for seed in range(20)]).mean(axis=0)
    # 10,000 draws: a share is off by 0.005 (one sd).
    assert (abs(taken - 0.5) < 0.025).all()


SAME = (
    ("1/2", "0.5", "\\frac{1}{2}"), ("50%", "50\\%"), ("50",), ("5 cm", "50 mm", "0.05 m"), ("5 km",), ("5", "5.0", "$5$"),
    ("x=5", "x = 5.0"), ("y=5",), ("101_2", "101_{2}"), ("101_3",), ("101",), ("12 apples",), ("12 pears",), ("12", "12.0"),
    ("A", "(A)"), ("(A) 3", "A. 3.0"), ("3",), ("a",), ("x+1", "1+x"), ("\\sqrt{2}-1", "\\frac{1}{1+\\sqrt{2}}"),
    ("1,2", "2, 1"), ("(1,2)",), ("0.2857142857",), ("2/7", "0.2857142857142857"), ("2 kJ", "2000 J"),
    ("7/2", "three and a half"), ("0.3", "0.30000000000000004"), ("yes", "Yes"), ("9^{9^{9^9}}",), ("60^\\circ",), ("60",),
)  # fmt: skip


ANSWERS = [*((text, at) for at, texts in enumerate(SAME) for text in texts), (None, None), (" ", None)]


@given(st.lists(st.sampled_from(ANSWERS)))
def test_answers_are_one_group_where_they_say_the_same_whatever_else_is_answered(
    answers: list[tuple[str | None, int | None]],
) -> None:
    groups = answer_groups([text for text, _ in answers])
    assert [groups.index(group) for group in groups] == [[at for _, at in answers].index(at) for _, at in answers]
    assert all((group is None) == (at is None) for group, (_, at) in zip(groups, answers, strict=True))


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


def test_an_interval_is_as_wide_as_the_normal_law_has_it() -> None:
    hits = np.zeros((400, 1))
    hits[:120] = 1.0
    (estimate,) = bootstrap_means(hits, seed=1)
    sd = (0.3 * 0.7 / 400) ** 0.5
    assert estimate.value == pytest.approx(0.3)
    # A quantile out of 2,000 resamples is off by 0.06 sd.
    assert estimate.low == pytest.approx(0.3 - 1.96 * sd, abs=0.3 * sd)
    assert estimate.high == pytest.approx(0.3 + 1.96 * sd, abs=0.3 * sd)


def test_columns_are_resampled_alike_so_differences_are_paired() -> None:
    one = np.random.default_rng(2).random(100)
    columns = np.stack([one, one - 0.25, one - (one - 0.25)], axis=1)
    first, second, difference = bootstrap_means(columns, seed=5)
    assert first.low is not None
    assert second.low == pytest.approx(first.low - 0.25)
    assert (difference.low, difference.high) == pytest.approx((0.25, 0.25))


def test_a_seed_gives_its_interval_again() -> None:
    values = np.random.default_rng(0).random((50, 2))
    assert bootstrap_means(values, seed=7) == bootstrap_means(values, seed=7)
    assert bootstrap_means(values, seed=7) != bootstrap_means(values, seed=8)


def test_one_problem_reports_no_interval() -> None:
    assert bootstrap_means(np.array([[0.5]]), seed=0) == [Interval(value=0.5, low=None, high=None)]


Row = dict[str, object]


def candidate(name: str, answer: str | None, score: float | None, orm: float | None = None) -> Row:
    return {
        "chain_id": name,
        "final_answer": answer,
        "outcome": None if answer is None else answer == "7",
        "score": score,
        "outcome_score": orm,
    }


def frame(**contests: Sequence[Row]) -> pl.DataFrame:
    """The candidates of problems."""
    types = {"outcome_score": pl.Float64}
    return pl.DataFrame(
        [{"problem_id": name, **each} for name, candidates in contests.items() for each in candidates],
        schema_overrides=types,
    )


def test_a_problem_worked_out_by_hand() -> None:
    """The majority is wrong, the best-scored candidate is correct, and the ORM prefers a wrong one."""
    one = frame(
        p=[
            candidate("a", "7", 0.9, 0.2),
            candidate("b", "8", 0.3, 0.9),
            candidate("c", "8", 0.4, 0.1),
            candidate("d", None, None, None),
        ]
    )
    (at_one, at_four) = compare_methods(one, [1, 4], seed=0)
    means = {method: estimate.value for method, estimate in at_four.accuracy.items()}
    assert means == pytest.approx(
        {
            Method.prm: 1.0,
            Method.weighted: 1.0,
            Method.majority: 0.0,
            Method.orm: 0.0,
            Method.random: 0.25,
            Method.oracle: 1.0,
        }
    )
    assert {method: ahead.value for method, ahead in at_four.ahead.items()} == pytest.approx(
        {Method.majority: 1.0, Method.orm: 1.0, Method.random: 0.75}
    )
    assert {estimate.value for estimate in at_one.accuracy.values()} == {0.25}


def test_the_order_of_problems_and_candidates_does_not_matter() -> None:
    rng = random.Random(1)
    contests = frame(
        **{
            f"p{p}": [candidate(f"{p}-{c}", rng.choice("789"), rng.random(), rng.random()) for c in range(16)]
            for p in range(5)
        }
    )
    mixed = contests.sample(fraction=1.0, shuffle=True, seed=1)
    assert compare_methods(contests, [2, 8], seed=4) == compare_methods(mixed, [2, 8], seed=4)


def test_problems_with_fewer_candidates_compete_with_all_they_have() -> None:
    contests = frame(one=[candidate("a", "7", 0.1)], two=[candidate("b", "7", 0.1), candidate("c", "8", 0.2)])
    (row,) = compare_methods(contests, [2], seed=0)
    assert row.short == 1
    assert row.accuracy[Method.prm].value == pytest.approx(0.5)
    assert row.accuracy[Method.random].value == pytest.approx(0.75)


def test_without_outcome_scores_there_is_no_orm() -> None:
    (row,) = compare_methods(frame(p=[candidate("a", "7", 0.1)]), [1], seed=0)
    assert Method.orm not in row.accuracy
    assert set(row.ahead) == {Method.majority, Method.random}
