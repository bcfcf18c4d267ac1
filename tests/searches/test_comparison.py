"""Runs are compared on the problems that all of them have, and what is not claimed is said."""

from dataclasses import replace

import numpy as np

from pipeline.analysis.select.searches import compare_searches
from tests.searches.outcomes import best_of, frame_of, rows_of, run_of

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
