"""The comparison of selection methods is consistent and does not depend on the order of the input."""

import random

import pytest

from pipeline.analysis.select.methods import Candidate, CandidateSet, Method, compare_methods


def candidate(name: str, answer: str | None, score: float | None, orm: float | None = None) -> Candidate:
    return Candidate(chain_id=name, answer=answer, right=answer == "7", score=score, outcome_score=orm)


def contest(name: str, *candidates: Candidate) -> CandidateSet:
    return CandidateSet(problem_id=name, candidates=candidates)


def test_a_problem_worked_out_by_hand() -> None:
    """The majority is wrong, the best-scored candidate is correct, and the ORM prefers a wrong one."""
    one = contest(
        "p",
        candidate("a", "7", 0.9, 0.2),
        candidate("b", "8", 0.3, 0.9),
        candidate("c", "8", 0.4, 0.1),
        candidate("d", None, None, None),
    )
    (at_one, at_four) = compare_methods([one], [1, 4], seed=0)
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
    contests = [
        contest(f"p{p}", *(candidate(f"{p}-{c}", rng.choice("789"), rng.random(), rng.random()) for c in range(16)))
        for p in range(5)
    ]
    mixed = [
        CandidateSet(problem_id=each.problem_id, candidates=tuple(rng.sample(each.candidates, 16)))
        for each in rng.sample(contests, 5)
    ]
    assert compare_methods(contests, [2, 8], seed=4) == compare_methods(mixed, [2, 8], seed=4)


def test_problems_with_fewer_candidates_compete_with_all_they_have() -> None:
    contests = [
        contest("one", candidate("a", "7", 0.1)),
        contest("two", candidate("b", "7", 0.1), candidate("c", "8", 0.2)),
    ]
    (row,) = compare_methods(contests, [2], seed=0)
    assert row.short == 1
    assert row.accuracy[Method.prm].value == pytest.approx(0.5)
    assert row.accuracy[Method.random].value == pytest.approx(0.75)


def test_without_outcome_scores_there_is_no_orm() -> None:
    (row,) = compare_methods([contest("p", candidate("a", "7", 0.1))], [1], seed=0)
    assert Method.orm not in row.accuracy
    assert set(row.ahead) == {Method.majority, Method.random}
