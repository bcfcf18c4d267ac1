"""What n of a run's chains achieve and cost, against enumeration of all parts of n."""

from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.comparison import best_of_each, first_chances
from pipeline.analysis.searches.equal_tokens import best_chances, tokens_of_chains
from pipeline.analysis.select.methods import best_of
from tests.searches.outcomes import Chain, run_of, searched

chains = st.lists(
    st.tuples(st.none() | st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.sampled_from([True, False, None])),
    min_size=1,
    max_size=6,
)


def best_among(part: tuple[Chain, ...]) -> list[Chain]:
    """Those of a part that have the best score, as a person finds them."""
    top = max((score for score, _ in part if score is not None), default=None)
    return [chain for chain in part if chain[0] == top]


def share_of(part: tuple[Chain, ...], outcome: bool | None) -> float:
    best = best_among(part)
    return sum(right is outcome for _, right in best) / len(best)


@given(chains, st.data())
def test_the_best_of_n_is_the_mean_over_all_parts_of_n(of: list[Chain], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(of)))
    values = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=len(of), max_size=len(of))))
    parts = list(combinations(range(len(of)), n))
    tops = [[at for at in part if of[at] in best_among(tuple(of[each] for each in part))] for part in parts]
    wanted = fmean(fmean(values[at] for at in top) for top in tops)
    assert best_of_each(np.array([score for score, _ in of], dtype=np.float64), values[:, None], [n])[
        0, 0
    ] == pytest.approx(wanted)


@given(chains, st.data())
def test_the_chance_is_that_of_a_graded_choice(of: list[Chain], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(of)))
    parts = list(combinations(of, n))
    right, ungraded = (fmean(share_of(part, outcome) for part in parts) for outcome in (True, None))
    found = best_chances(run_of([searched("p", of)]), [n])[0, 0]
    if ungraded == pytest.approx(1):
        assert np.isnan(found)
    else:
        assert found == pytest.approx(right / (1 - ungraded))


@pytest.mark.parametrize(("count", "n"), [(1, 1), (5, 1), (5, 5), (300, 7), (1024, 700)])
def test_the_chances_of_ranks_add_up_to_one_also_for_many_candidates(count: int, n: int) -> None:
    found = first_chances(count, (n,))[0]
    assert found.shape == (count,)
    assert found.sum() == pytest.approx(1)
    assert found[0] == pytest.approx(n / count)
    right = [at % 3 == 0 for at in range(count)]
    scores = [float(-at) for at in range(count)]
    assert found @ np.array(right) == pytest.approx(best_of(scores, right, n))


def test_all_that_a_problem_has_compete_where_it_has_fewer() -> None:
    run = run_of([searched("a", [(0.5, True)]), searched("b", [(0.9, False), (0.1, True)])])
    assert best_chances(run, [1, 2, 4]).tolist() == [[1, 1, 1], [0.5, 0, 0]]


def test_a_problem_without_a_chain_is_wrong_and_one_without_a_known_answer_is_no_claim() -> None:
    run = run_of([searched("a", known=False, chains=[(0.5, False)]), searched("b", has_choice=False, right=False)])
    found = best_chances(run, [1, 2])
    assert np.isnan(found[0]).all()
    assert (found[1] == 0).all()


def test_searches_of_one_problem_count_once() -> None:
    of = [searched("a", [(0.5, True)]), searched("a", [(0.5, False)]), searched("b", [(0.5, True)])]
    assert best_chances(run_of(of), [1]).tolist() == [[0.5], [1]]


def test_tokens_grow_with_n_and_those_of_lost_chains_are_spread() -> None:
    of = [
        searched("a", [(0.5, True)] * 4, policy_tokens=40, scorer_tokens=20),
        searched("b", [(0.5, True)] * 2, policy_tokens=40, scorer_tokens=20),
        searched("c", has_choice=False, policy_tokens=8, scorer_tokens=0),
    ]
    run = run_of(of, n=4)
    assert tokens_of_chains(run, [1]).tolist() == [[[10, 5]], [[20, 10]], [[2, 0]]]
    assert tokens_of_chains(run, [1, 4]).mean(axis=0).tolist() == [
        pytest.approx([32 / 3, 5]),
        pytest.approx([128 / 3, 20]),
    ]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50)), min_size=1, max_size=4), st.integers(0, 20))
def test_the_scorer_computes_chains_with_equal_texts_once(texts: list[tuple[int, int]], others: int) -> None:
    """Over all choices of n chains, the tokens of their different texts."""
    chains = [text for text, (count, _) in enumerate(texts) for _ in range(count)]
    computed = sum(tokens for _, tokens in texts)
    of = [(0.5, True)] * len(chains)
    run = run_of([searched("a", of, policy_tokens=60, scorer_tokens=computed + others, texts=texts)])
    sizes = range(1, len(chains) + 1)
    for size, (policy, scorer) in zip(sizes, tokens_of_chains(run, sizes)[0].tolist(), strict=True):
        drawn = [sum(texts[text][1] for text in set(chosen)) for chosen in combinations(chains, size)]
        assert policy == pytest.approx(60 * size / len(chains))
        assert scorer == pytest.approx(fmean(drawn) + others * size / len(chains))
    doubled = tokens_of_chains(run, [2 * len(chains)])[0, 0].tolist()
    assert doubled == pytest.approx([120, 2 * (computed + others)])
