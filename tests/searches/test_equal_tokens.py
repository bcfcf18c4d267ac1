"""A run is compared with as many chains as cost the same, problem by problem."""

from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.searches.equal_tokens import at_equal_tokens
from pipeline.analysis.searches.figures import EqualTokens, SearchRun
from pipeline.analysis.select.methods import best_of
from tests.searches.outcomes import best_of as best_of_run
from tests.searches.outcomes import frame_of, rows_of, run_of, searched

pytestmark = pytest.mark.slow

CHAINS = best_of_run(8, 60, np.random.default_rng(3))


def with_tokens(tokens: int, run: SearchRun = CHAINS) -> SearchRun:
    """The choices of a run as if each problem had cost so much of the policy, and nothing of the scorer."""
    return spending(run, tokens, 0)


def spending(run: SearchRun, policy: int, scorer: int) -> SearchRun:
    searches = [{**each, "policy_tokens": policy, "scorer_computed": scorer} for each in rows_of(run)]
    return replace(run, searches=frame_of(searches))


def accuracy_of_best_of(n: int) -> float:
    """By the other implementation of best-of-n, one problem at a time."""
    return fmean(best_of(each["scores"], each["outcomes"], n) for each in rows_of(CHAINS))


def values(found: EqualTokens) -> tuple[float, float, float]:
    assert found.accuracy.value is not None
    assert found.best_of_k.value is not None
    assert found.difference.value is not None
    return found.accuracy.value, found.best_of_k.value, found.difference.value


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_whole_k_is_the_exact_expectation(n: int) -> None:
    found = at_equal_tokens(with_tokens(20 * n), CHAINS, seed=0)
    assert (found.k, found.most, found.most_tokens, found.problems) == (n, 8, 160, 60)
    accuracy, best, difference = values(found)
    assert best == pytest.approx(accuracy_of_best_of(n))
    assert difference == pytest.approx(accuracy - best)


@given(st.floats(1, 8))
def test_between_two_whole_k_the_chance_is_between_theirs(k: float) -> None:
    run = with_tokens(round(1000 * k), run_of(rows_of(CHAINS)))
    chains = spending(CHAINS, 7000, 1000)
    found = at_equal_tokens(run, chains, seed=0)
    assert found.k == pytest.approx(round(1000 * k) / 1000)
    below = min(7, int(found.k))
    part = found.k - below
    wanted = (1 - part) * accuracy_of_best_of(below) + part * accuracy_of_best_of(below + 1)
    assert values(found)[1] == pytest.approx(wanted)


def test_the_run_itself_is_as_good_as_its_own_chains() -> None:
    found = at_equal_tokens(CHAINS, CHAINS, seed=0)
    assert found.k == pytest.approx(8)
    assert values(found)[2] == pytest.approx(0, abs=1e-12)


def test_k_knows_that_repeated_chains_are_scored_once() -> None:
    """Eight chains of two texts: 10 tokens each to write, and 70 to score a text. Two chains cost 20, and 70 for one text or
    140 for two, of which the chance is 4 / 7."""
    eight = searched("a", [(0.5, True)] * 8, policy_tokens=80, scorer_tokens=140)
    chains = run_of([{**eight, "texts": [4, 4], "computed": [70, 70]}])
    for tokens, k in ((80, 1), (20 + 30 + 80, 2), (105, 1.5), (220, 8)):
        found = at_equal_tokens(with_tokens(tokens, chains), chains, seed=0)
        assert found.k == pytest.approx(k)
        assert found.in_range
    assert found.most_tokens == pytest.approx(220)


@pytest.mark.parametrize("tokens", [19, 161])
def test_more_or_fewer_tokens_than_there_are_chains_for_are_out_of_range(tokens: int) -> None:
    found = at_equal_tokens(with_tokens(tokens), CHAINS, seed=0)
    assert not found.in_range
    assert (found.accuracy.value, found.best_of_k.value, found.difference.value, found.problems) == (None,) * 3 + (0,)
    assert (found.tokens, found.most_tokens) == (tokens, 160)


def test_no_chains_are_out_of_range() -> None:
    none = run_of(rows_of(with_tokens(0)))
    assert not at_equal_tokens(CHAINS, none, seed=0).in_range
    without = run_of([searched("p", has_choice=False)])
    assert not at_equal_tokens(without, without, seed=0).in_range


def test_the_difference_is_paired() -> None:
    """A run that agrees with best-of-4 on nearly all problems has a narrow interval, however much problems differ."""
    rng = np.random.default_rng(5)
    problems = [rng.random() < 0.5 for _ in range(400)]
    of = [searched(f"p{at}", [(0.5, easy)] * 4, right=easy, policy_tokens=40) for at, easy in enumerate(problems)]
    # In one of 40 problems, the other run is right where best-of-4 is wrong.
    flipped = [{**each, "right": True} if at % 40 == 0 else each for at, each in enumerate(of)]
    found = at_equal_tokens(run_of(flipped), run_of(of), seed=0)
    gained = sum(each["right"] is True for each in flipped) - sum(problems)
    assert gained > 0
    assert found.difference.value == pytest.approx(gained / 400)
    assert found.difference.low is not None
    assert found.difference.high is not None
    sd = (gained / 400 / 400) ** 0.5
    assert found.difference.high - found.difference.low == pytest.approx(2 * 1.96 * sd, rel=0.25)
    assert found.difference.low >= 0
    assert found.accuracy.low is not None
    assert found.accuracy.high is not None
    assert found.accuracy.high - found.accuracy.low > 0.08


def test_the_interval_knows_that_k_is_uncertain() -> None:
    """All problems have the same chances, so that nothing but k makes an interval."""
    rng = np.random.default_rng(7)
    of = [searched(f"p{at}", [(0.9, True), (0.1, False)], policy_tokens=20) for at in range(300)]
    tokens = rng.choice([10, 20], 300).tolist()
    spent = [{**each, "policy_tokens": own} for each, own in zip(of, tokens, strict=True)]
    found = at_equal_tokens(run_of(spent), run_of(of), seed=0)
    assert found.best_of_k.low is not None
    assert found.best_of_k.high is not None
    # Best-of-1 is right for 1/2, best-of-2 for 1: accuracy is k / 2, and k has an sd of 0.5 / sqrt(300).
    assert found.best_of_k.value == pytest.approx(found.k / 2)
    assert found.best_of_k.high - found.best_of_k.low == pytest.approx(2 * 1.96 * 0.25 / 300**0.5, rel=0.15)


def test_only_problems_that_both_claim_are_compared() -> None:
    of = [
        searched("a", [(0.5, True)], policy_tokens=10),
        searched("b", [(0.5, None)], right=None, policy_tokens=10),
        searched("c", [(0.5, False)], right=False, policy_tokens=10),
        searched("d", [(0.5, False)], known=False, policy_tokens=10),
    ]
    run = [{**each, "right": right} for each, right in zip(of, [None, True, True, None], strict=True)]
    found = at_equal_tokens(run_of(run), run_of(of), seed=0)
    assert found.problems == 1
    assert values(found) == (1, 0, 1)


@pytest.mark.slow
def test_intervals_hold_what_they_promise() -> None:
    """The difference between the run and best-of-2 is 0 in truth; its interval has it in about 95 of 100 cases."""
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(200):
        of = []
        for at in range(60):
            chance = rng.random()
            right = rng.random(4) < chance
            scores = rng.random(4)
            own = rng.random(2) < chance
            chains = list(zip(scores.tolist(), right.tolist(), strict=True))
            of.append((searched(f"p{at:03d}", chains, policy_tokens=40), bool(own[0])))
        run = run_of([{**each, "right": own, "policy_tokens": 20} for each, own in of])
        found = at_equal_tokens(run, run_of([each for each, _ in of]), seed=0).difference
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0 <= found.high
    # Three standard deviations of 200 cases at 0.95, and the bootstrap's own lack at 60 problems.
    assert held >= 178
