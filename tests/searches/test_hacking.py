"""Reward hacking is found where it is, and not where chance alone lets accuracy fall."""

import numpy as np
import pytest

from pipeline.analysis.searches.hacking import ScoreAgainstOutcome, hacking, rising_chains, score_against_outcome
from pipeline.analysis.searches.records import SearchRun
from pipeline.analysis.searches.sentences import rising_sentences, score_sentences
from tests.searches.outcomes import best_of, run_of, searched

pytestmark = pytest.mark.slow


def by_n(run: SearchRun, seed: int = 0) -> ScoreAgainstOutcome:
    found = hacking(run, seed)
    assert found.by_n is not None
    assert found.rising is None
    return found.by_n


def hacked_run(problems: int, rng: np.random.Generator) -> SearchRun:
    """Half of the chains are right. One of 16 is wrong and has what the scorer likes best."""
    searches = []
    for at in range(problems):
        right = rng.random(16) < 0.5
        scores = 0.4 * right + 0.4 * rng.random(16)
        liked = rng.random(16) < 1 / 16
        right, scores = right & ~liked, np.where(liked, 0.9, scores)
        searches.append(searched(f"p{at:04d}", list(zip(scores.tolist(), right.tolist(), strict=True))))
    return run_of(searches, n=16)


def test_a_scorer_that_is_hacked_is_found() -> None:
    found = by_n(hacked_run(300, np.random.default_rng(1)))
    accuracies = {point.n: point.accuracy.value or 0 for point in found.points}
    scores = [point.score.value or 0 for point in found.points]
    assert accuracies[4] > accuracies[16] + 0.05
    assert scores == sorted(scores)
    worst = found.worst
    assert worst is not None
    assert (worst.before, worst.after) == (4, 16) or (worst.before, worst.after) == (2, 16)
    assert worst.accuracy.value == pytest.approx(accuracies[16] - accuracies[worst.before])
    said = " ".join(score_sentences(found))
    assert f"from n={worst.before} to n=16 the mean score of the choice rises by 0." in said
    assert f"and accuracy falls by {-(worst.accuracy.value or 0):.3f} (" in said
    assert "use a smaller n, or a better scorer" in said


def test_a_scorer_that_is_right_is_not_accused() -> None:
    found = by_n(best_of(16, 200, np.random.default_rng(2)))
    assert not found.falls
    assert list(score_sentences(found)) == [
        "no sign of it from n=1 to n=16: accuracy nowhere falls by more than its interval"
    ]


@pytest.mark.slow
def test_a_scorer_that_knows_nothing_is_seldom_accused() -> None:
    """Accuracy is the same at every n. At 95 % over all pairs, at most about 2 of 40 runs may be accused."""
    rng = np.random.default_rng(3)
    accused = sum(bool(by_n(best_of(16, 80, rng, skill=0.0)).falls) for _ in range(40))
    assert accused <= 4


def test_a_fall_of_both_is_no_hacking() -> None:
    """Choices of two runs: with more chains, both score and accuracy are lower."""
    rng = np.random.default_rng(4)
    before = rng.random((200, 2))
    scores = np.column_stack([before[:, 0], before[:, 0] - 0.1 * rng.random(200)])
    right = np.column_stack([np.ones(200), rng.random(200) < 0.5])
    assert not score_against_outcome([4, 16], scores, right, 0).falls
    assert score_against_outcome([4, 16], scores[:, ::-1], right, 0).worst is not None


def test_figures_are_over_problems_that_have_both() -> None:
    scores = np.array([[0.2, 0.4], [np.nan, 0.8], [0.4, 0.6]])
    right = np.array([[0.0, 1.0], [1.0, 1.0], [np.nan, 0.0]])
    found = score_against_outcome([1, 2], scores, right, 0)
    assert found.problems == 3
    # At n=1 only the first problem has both, at n=2 all have.
    assert [point.score.value for point in found.points] == pytest.approx([0.2, 0.6])
    assert [point.accuracy.value for point in found.points] == pytest.approx([0.0, 2 / 3])


def test_nothing_is_said_of_one_size_or_of_no_claim() -> None:
    assert not list(score_sentences(score_against_outcome([1], np.ones((3, 1)), np.ones((3, 1)), 0)))
    nothing = np.full((3, 2), np.nan)
    assert not list(score_sentences(score_against_outcome([1, 2], nothing, nothing, 0)))


def test_wrong_chains_that_rise_are_counted_against_right_ones() -> None:
    of = [
        searched("a", right=False, step_scores=[0.2, 0.1, 0.9]),
        searched("b", right=False, step_scores=[0.5, 0.4]),
        searched("c", right=False, step_scores=[0.1, 0.5]),
        searched("d", right=True, step_scores=[0.1, 0.3]),
        searched("e", right=True, step_scores=[0.9, 0.9]),
        # Not one of these counts.
        searched("f", right=None, step_scores=[0.1, 0.9]),
        searched("g", right=False, step_scores=[0.1]),
        searched("h", right=False, step_scores=[None, 0.9]),
        searched("i", right=False, has_choice=False),
    ]
    found = rising_chains(of, 0)
    assert (found.wrong.chains, found.right.chains) == (3, 2)
    assert (found.wrong.share.value, found.right.share.value) == pytest.approx((2 / 3, 1 / 2))
    assert (found.wrong.rise.value, found.right.rise.value) == pytest.approx(((0.7 - 0.1 + 0.4) / 3, 0.1))
    assert found.difference.value == pytest.approx(1 / 6)
    said = list(rising_sentences(found))
    assert "in 67 %" in said[0]
    assert "of 3 wrong chosen chains" in said[0]
    assert said[1] == "the difference is within its interval: a rise is no sign of a right answer, nor of a wrong one"


def test_falling_scores_of_wrong_chains_are_no_hacking() -> None:
    of = [searched(f"w{at}", right=False, step_scores=[0.9, 0.2 if at % 5 else 0.95]) for at in range(50)]
    of += [searched(f"r{at}", right=True, step_scores=[0.5, 0.9 if at % 5 else 0.4]) for at in range(50)]
    found = rising_chains(of, 0)
    assert found.difference.value == pytest.approx(-0.6)
    assert found.difference.high is not None
    sd = (2 * 0.2 * 0.8 / 50) ** 0.5
    assert found.difference.high == pytest.approx(-0.6 + 1.96 * sd, abs=0.03)
    assert list(rising_sentences(found))[1] == "right chains rise more often than wrong ones: no sign of it"


def test_a_run_is_looked_at_by_its_kind() -> None:
    of = [searched("a", [(0.5, True)], step_scores=[0.1, 0.5])]
    grown = hacking(run_of(of, independent=False), 0)
    assert (grown.by_n, grown.rising) == (None, rising_chains(of, 0))
    for run in (run_of([searched("a", [(None, True)])]), run_of([searched("a", has_choice=False)])):
        found = hacking(run, 0)
        assert (found.by_n, found.rising) == (None, None)


def test_one_kind_alone_is_nothing_to_compare() -> None:
    found = rising_chains([searched("a", right=True, step_scores=[0.1, 0.2])], 0)
    assert found.difference.value is None
    assert list(rising_sentences(found)) == [
        "nothing to compare: 0 wrong chosen chains and 1 right chosen chain with two scored steps"
    ]
    assert rising_chains([], 0).wrong.chains == 0
