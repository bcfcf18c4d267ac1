"""Runs are compared on the problems that all of them have, and what is not claimed is said."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.searches.comparison import best_of_k_from, compare_searches, on_common_problems
from pipeline.analysis.searches.sentences import claim_sentences
from pipeline.analysis.searches.summary import summary
from tests.searches.outcomes import best_of, run_of, searched

OWN = {"search.method": "best_of_n", "search.n": 16, "policy.model": "one", "staged_input": "a"}
SIXTEEN = replace(best_of(16, 40, np.random.default_rng(1)), name="sixteen", settings=OWN)
FOUR = replace(
    best_of(4, 40, np.random.default_rng(2)), name="four", n=4, settings={**OWN, "search.n": 4, "staged_input": "b"}
)
BEAM = replace(
    run_of(
        [replace(each, policy_tokens=100, scorer_tokens=60, right=True) for each in SIXTEEN.searches[:30]],
        name="beam",
        method="beam",
        independent=False,
        settings={"search.method": "beam", "search.width": 2, "policy.model": "other", "scorer.model": "x"},
    )
)


def test_only_common_problems_count() -> None:
    found = compare_searches([BEAM, SIXTEEN], SIXTEEN, None, seed=0)
    assert (found.problems, found.left_out, found.against) == (30, 10, "sixteen")
    assert [each.summary.problems for each in found.runs] == [30, 30]
    assert found.differing == ("policy.model",)
    beam, sixteen = found.runs
    assert sixteen.equal_tokens is None
    assert beam.equal_tokens is not None
    assert (beam.equal_tokens.k, beam.equal_tokens.problems) == (8, 30)
    assert beam.equal_tokens.accuracy.value == beam.summary.accuracy.value == 1
    assert (beam.curve, beam.hacking.by_n) == ((), None)
    assert [point.n for point in sixteen.curve] == [1, 2, 4, 8, 16]
    assert sixteen.hacking.by_n is not None


def test_the_run_to_compare_with_need_not_be_shown() -> None:
    found = compare_searches([BEAM], SIXTEEN, [4, 99], seed=0)
    assert [each.summary.name for each in found.runs] == ["beam"]
    assert found.runs[0].equal_tokens is not None
    assert compare_searches([SIXTEEN], None, [4, 99], seed=0).runs[0].curve[0].n == 4


def test_a_run_on_more_problems_says_the_same_of_common_ones() -> None:
    alone = compare_searches([replace(SIXTEEN, searches=SIXTEEN.searches[:30])], None, [1, 16], seed=0)
    both = compare_searches([SIXTEEN, BEAM], None, [1, 16], seed=0)
    assert alone.runs[0].summary == both.runs[0].summary
    assert alone.runs[0].curve == both.runs[0].curve


def test_runs_that_differ_in_n_alone_are_looked_at_together() -> None:
    found = compare_searches([SIXTEEN, BEAM, FOUR], SIXTEEN, None, seed=0)
    (group,) = found.same_method
    assert group.names == ("four", "sixteen")
    assert [point.n for point in group.by_n.points] == [4, 16]
    kept, _ = on_common_problems([SIXTEEN, BEAM])
    mean = np.mean([each.score for each in kept[0].searches if each.score is not None])
    assert group.by_n.points[1].score.value == pytest.approx(mean)
    other = replace(FOUR, settings={**FOUR.settings, "policy.model": "other"})
    assert not compare_searches([SIXTEEN, other], SIXTEEN, None, seed=0).same_method
    assert not compare_searches([SIXTEEN, replace(SIXTEEN, name="again")], SIXTEEN, None, seed=0).same_method


def test_chains_for_best_of_k_are_independent_and_scored() -> None:
    unscored = run_of([searched("p", [(None, True)])])
    assert best_of_k_from([BEAM, unscored, FOUR, SIXTEEN]) is FOUR
    assert best_of_k_from([BEAM, unscored]) is None


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(ValueError, match="no problem in common"):
        compare_searches([SIXTEEN, run_of([searched("other")])], None, None, seed=0)


def test_what_is_not_claimed_is_counted() -> None:
    of = [
        searched("a", right=True, score=0.9, policy_tokens=10, scorer_tokens=4, seconds=2),
        searched("b", right=False, score=None, has_choice=False, policy_tokens=20, scorer_tokens=0, seconds=0),
        searched("c", right=None, score=0.5, policy_tokens=30, scorer_tokens=8, seconds=1),
        searched("d", known=False, score=0.1, policy_tokens=40, scorer_tokens=0, seconds=1),
    ]
    found = summary(run_of(of), seed=0)
    assert (found.searches, found.unknown, found.ungraded, found.without_choice) == (4, 1, 1, 1)
    assert (found.accuracy.value, found.score.value) == pytest.approx((0.5, 0.5))
    assert (found.policy_tokens, found.scorer_tokens, found.total_tokens, found.seconds) == (25, 3, 28, 1)
    assert list(claim_sentences(found)) == [
        "accuracy is not claimed for 2 of 4 searches (50 %): 1 without a known answer, 1 whose chosen answer "
        "cannot be graded",
        "1 search without a chain, counted as wrong",
    ]
    assert not list(claim_sentences(summary(run_of(of[:1]), seed=0)))


def test_without_a_known_answer_no_accuracy_is_claimed() -> None:
    run = run_of([searched(f"p{at}", [(0.5, None)], known=False) for at in range(3)])
    found = compare_searches([run], run, None, seed=0).runs[0]
    assert (found.summary.accuracy.value, found.summary.unclaimed) == (None, 3)
    assert found.coverage.points == ()
    assert [point.best and point.best.value for point in found.curve] == [None]
    assert found.curve[0].majority.value is None
