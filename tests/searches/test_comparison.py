"""Runs are compared on the problems that all of them have, and what is not claimed is said."""

from dataclasses import replace

import numpy as np

from pipeline.analysis.searches.figures import summary
from pipeline.analysis.searches.sentences import claim_sentences
from pipeline.analysis.select.searches import compare_searches
from tests.searches.outcomes import best_of, frame_of, rows_of, run_of, searched

OWN = {"search.method": "best_of_n", "search.n": 16, "policy.model": "one", "staged_input": "a"}
SIXTEEN = replace(best_of(16, 40, np.random.default_rng(1)), name="sixteen", settings=OWN)
FOUR = replace(
    best_of(4, 40, np.random.default_rng(2)), name="four", n=4, settings={**OWN, "search.n": 4, "staged_input": "b"}
)
BEAM = replace(
    run_of(
        [{**each, "policy_tokens": 100, "scorer_computed": 60, "right": True} for each in rows_of(SIXTEEN)[:30]],
        name="beam",
        method="beam",
        independent=False,
        settings={"search.method": "beam", "search.width": 2, "policy.model": "other", "scorer.model": "x"},
    )
)


def test_only_common_problems_count() -> None:
    found = compare_searches([BEAM, SIXTEEN], seed=0)
    assert (found.problems, found.left_out, found.against) == (30, 10, "sixteen")
    assert [each.summary.problems for each in found.runs] == [30, 30]
    assert found.differing == ("policy.model",)
    beam, sixteen = found.runs
    assert sixteen.equal_tokens is None
    assert beam.equal_tokens is not None
    assert (beam.equal_tokens.k, beam.equal_tokens.problems) == (8, 30)
    assert beam.equal_tokens.accuracy.value == beam.summary.accuracy.value == 1


def test_a_run_on_more_problems_says_the_same_of_common_ones() -> None:
    alone = compare_searches([replace(SIXTEEN, searches=SIXTEEN.searches[:30])], seed=0)
    both = compare_searches([SIXTEEN, BEAM], seed=0)
    assert alone.runs[0].summary == both.runs[0].summary
    assert alone.runs[0].coverage == both.runs[0].coverage


def test_chains_for_best_of_k_are_the_first_that_are_independent_and_scored() -> None:
    searches = frame_of([{**each, "scores": [None] * 16} for each in rows_of(SIXTEEN)])
    unscored = replace(SIXTEEN, name="unscored", searches=searches)
    assert compare_searches([BEAM, unscored, FOUR, SIXTEEN], seed=0).against == "four"
    assert compare_searches([BEAM, unscored], seed=0).against is None


def test_runs_without_a_common_problem_have_no_figures() -> None:
    found = compare_searches([SIXTEEN, run_of([searched("other")])], seed=0)
    assert (found.problems, found.left_out, found.runs) == (0, 41, ())


def test_what_is_not_claimed_is_counted() -> None:
    of = [
        searched("a", right=True, policy_tokens=10, scorer_tokens=4, seconds=2),
        searched("b", right=False, has_choice=False, policy_tokens=20, scorer_tokens=0, seconds=0),
        searched("c", right=None, policy_tokens=30, scorer_tokens=8, seconds=1),
        searched("d", known=False, policy_tokens=40, scorer_tokens=0, seconds=1),
    ]
    found = summary(run_of(of), seed=0)
    assert (found.searches, found.unknown, found.ungraded, found.without_choice) == (4, 1, 1, 1)
    assert found.accuracy.value == 0.5
    assert (found.policy_tokens, found.scorer_tokens, found.total_tokens, found.seconds) == (25, 3, 28, 1)
    assert list(claim_sentences(found)) == [
        "accuracy is not claimed for 2 of 4 searches (50 %): 1 without a known answer, 1 whose chosen answer "
        "cannot be graded",
        "1 search without a chain, counted as wrong",
    ]
    assert not list(claim_sentences(summary(run_of(of[:1]), seed=0)))
