"""Votes, checked against a count by hand over all subsets."""

from collections import defaultdict
from itertools import combinations
from math import comb
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.select.methods import MAX_SUBSETS, subsets_of, vote
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


def test_equal_answers_are_one_group_however_they_are_written() -> None:
    groups = answer_groups(["1/2", "0.5", "7", None, "\\frac{1}{2}", "50%", " ", "7.0"])
    assert groups[0] == groups[1] == groups[4] == groups[5]
    assert groups[2] == groups[7] != groups[0]
    assert groups[3] is groups[6] is None


def test_what_two_answers_equal_makes_them_one() -> None:
    """The checker accepts an answer without its percent sign, so 50% equals both 50 and 0.5."""
    first, *others = answer_groups(["0.5", "50", "50%"])
    assert others == [first, first]
    apart = answer_groups(["0.5", "50"])
    assert apart[0] != apart[1]


@given(st.permutations(["1", "1.0", "2", "x+1", "1+x", None, "3"]))
def test_groups_do_not_depend_on_the_order(answers: list[str | None]) -> None:
    of = dict(zip(answers, answer_groups(answers), strict=True))
    assert of["1"] == of["1.0"]
    assert of["x+1"] == of["1+x"]
    assert len({of["1"], of["2"], of["3"], of["x+1"]}) == 4
