"""Calibrations where the truth is known: they repair what is wrong, leave what is right, and say how sure they are."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.analysis.calibrate.fit import Maps, StepGroup, choose, cross_fitted, fit_maps, position_maps, step_groups
from pipeline.analysis.calibrate.maps import fit_curve
from pipeline.analysis.calibrate.report import reliability
from pipeline.scorers.calibration import MapKind
from tests.calibrate.known import (
    Curve,
    Sample,
    bent,
    first_steps,
    honest,
    overconfident,
    sample,
    shifted,
    squared_error,
    true_ece,
)

pytestmark = pytest.mark.slow

FOLDS = 5
ALL = (StepGroup(first=1, last=None),)


def fitted(found: Sample) -> Maps:
    groups = step_groups(found.trials.steps, 200)
    return fit_maps(choose(groups, found.trials, FOLDS).kind, groups, found.trials)


@pytest.mark.parametrize("curve", [overconfident, shifted, bent])
def test_wrong_scores_become_probabilities_on_problems_that_are_not_seen(curve: Curve) -> None:
    """The goal: an ECE of at most 0.03, from 0.15 or more. Measured against E(V | score) itself."""
    before, after = [], []
    for seed in range(10):
        maps = fitted(sample(curve, seed))
        unseen = sample(curve, 1000 + seed, problems=500)
        before.append(true_ece(unseen.trials.scores, unseen.truth))
        after.append(true_ece(maps.at(unseen.trials), unseen.truth))
    assert min(before) >= 0.14
    assert np.mean(before) >= 0.148
    assert np.mean(after) <= 0.02
    assert max(after) <= 0.03


@pytest.mark.parametrize("problems", [50, 300])
def test_right_scores_are_left_as_they_are(problems: int) -> None:
    """Never worse where nothing is wrong: a map is taken by mistake in few samples, and costs little then."""
    costs = []
    for seed in range(40):
        unseen = sample(honest, 1000 + seed, problems=200)
        maps = fitted(sample(honest, seed, problems=problems))
        costs.append(squared_error(maps.at(unseen.trials), unseen.truth))
    assert np.mean(costs) <= 1e-4
    assert max(costs) <= 2e-3
    assert sum(cost > 1e-6 for cost in costs) <= 4


def test_a_step_that_is_wrong_alone_has_a_map_of_its_own() -> None:
    found = sample(honest, 0, by_step={2: overconfident})
    maps = fitted(found)
    assert [group.name for group in maps.groups] == ["1", "2", "3", "4+"]
    unseen = sample(honest, 1, problems=500, by_step={2: overconfident})
    predicted = maps.at(unseen.trials)
    for step in range(1, 5):
        held = unseen.trials.steps == step
        assert true_ece(predicted[held], unseen.truth[held]) <= 0.03, step
    alone = fit_maps(MapKind.isotonic, ALL, found.trials).at(unseen.trials)
    second = unseen.trials.steps == 2
    assert true_ece(alone[second], unseen.truth[second]) > 0.08


@pytest.mark.parametrize(
    ("curve", "problems", "rollouts"),
    [(overconfident, 100, 8), (overconfident, 1000, 1), (shifted, 300, 8), (bent, 1000, 8), (honest, 300, 8)],
)
def test_intervals_hold_v_at_a_score(curve: Curve, problems: int, rollouts: int) -> None:
    """Nominally in 95 of 100 places. Fewer where a curve bends within the scores that an interval is made from."""
    held = []
    for seed in range(20):
        found = sample(curve, seed, problems=problems, steps=1, rollouts=rollouts)
        (made,) = position_maps(fitted(found), found.trials)
        knots = np.array(made.scores)
        inner = (knots >= found.trials.scores.min()) & (knots <= found.trials.scores.max())
        truth = np.clip(curve(knots), 1e-3, 1 - 1e-3)
        held.append(((np.array(made.low) <= truth) & (truth <= np.array(made.high)))[inner].mean())
    assert 0.9 <= np.mean(held) <= 1


def test_values_that_are_all_zero_do_not_prove_that_v_is_zero() -> None:
    found = sample(honest, 0, problems=100, steps=1)
    none = replace(
        found.trials, values=np.zeros(len(found.trials)), rollouts=np.ones(len(found.trials), dtype=np.int64)
    )
    (made,) = position_maps(fit_maps(MapKind.isotonic, ALL, none), none)
    assert min(made.high) > 0.02
    assert max(made.low) < 1e-3


def test_predictions_of_unseen_problems_know_nothing_of_them() -> None:
    """Scores that say nothing about V: the curve that follows its own data looks better than the mean, and is not."""
    rng = np.random.default_rng(0)
    found = sample(lambda scores: np.full(len(scores), 0.5), 0, problems=60, chains=1, steps=4, rollouts=1)
    own = fit_curve(MapKind.isotonic, found.trials).at(found.trials.scores)
    kept, _ = cross_fitted(ALL, found.trials, FOLDS, found.trials)
    assert ((own - found.trials.values) ** 2).mean() < ((0.5 - found.trials.values) ** 2).mean()
    assert squared_error(own, found.truth) > 0
    honest_loss = reliability(kept, found.trials, 10).brier.value
    assert honest_loss is not None
    assert honest_loss > 0.245
    # The values of one problem are drawn again: what is predicted for it stays, what is predicted for others need not.
    chosen = found.trials.problems == 7
    other = replace(found.trials, values=np.where(chosen, rng.random(len(chosen)), found.trials.values))
    again, of_others = cross_fitted(ALL, other, FOLDS, found.trials)
    assert np.array_equal(again[chosen], kept[chosen])
    assert not np.array_equal(again, kept)
    assert np.array_equal(of_others, again)


def test_what_helps_and_what_is_not_reliable_are_said() -> None:
    wrong = sample(overconfident, 0)
    choice = choose(ALL, wrong.trials, FOLDS)
    assert choice.kind is choice.best
    assert choice.gain.low is not None
    assert choice.gain.low > 0
    assert choice.gain.value == pytest.approx(squared_error(wrong.trials.scores, wrong.truth), abs=0.006)
    right = choose(ALL, sample(honest, 0).trials, FOLDS)
    assert right.kind is MapKind.identity
    assert right.gain.low is not None
    assert right.gain.low <= 0


def test_the_kind_follows_the_form() -> None:
    assert choose(ALL, sample(shifted, 1, problems=1000).trials, FOLDS).kind is MapKind.beta
    assert choose(ALL, sample(bent, 1, problems=1000).trials, FOLDS).kind is MapKind.isotonic


@given(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.integers(1, 80))
def test_groups_cover_all_steps_and_have_enough_prefixes(counts: list[int], least: int) -> None:
    steps = np.repeat(np.arange(1, len(counts) + 1), counts)
    groups = step_groups(steps, least)
    assert groups[0].first == 1
    assert groups[-1].last is None
    assert all(one.last is not None and one.last + 1 == other.first for one, other in pairwise(groups))
    sizes = [int(group.holds(steps).sum()) for group in groups]
    assert sum(sizes) == len(steps)
    assert all(size >= least for size in sizes) or len(groups) == 1


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from([0, 0.25, 0.5, 1]), st.integers(0, 9)), min_size=1, max_size=60
    ),
    st.sampled_from(MapKind),
)
@example([(at / 60, float(at < 30), at % 10) for at in range(60)], MapKind.beta)
def test_curves_rise_within_0_and_1(rows: list[tuple[float, float, int]], kind: MapKind) -> None:
    """Whatever the scores and values are: equal, at the ends, or falling."""
    scores, values, problems = (np.array(column) for column in zip(*rows, strict=True))
    trials = first_steps(scores.astype(float), values.astype(float), problems, rollouts=4)
    curve = fit_curve(kind, trials)
    assert (curve.scores[0], curve.scores[-1]) == (0, 1)
    assert (np.diff(curve.scores) > 0).all()
    assert (np.diff(curve.values) >= 0).all()
    assert curve.values[0] >= 0
    assert curve.values[-1] <= 1
    assert curve.at(np.array([0.9])) > curve.at(np.array([0.1]))
    (made,) = position_maps(Maps(groups=ALL, curves=(curve,)), trials)
    low, middle, high = (np.array(each) for each in (made.low, made.values, made.high))
    assert ((low <= middle) & (middle <= high)).all()
    assert all((np.diff(line) >= 0).all() for line in (low, middle, high))


def test_a_beta_curve_is_the_one_that_made_the_values() -> None:
    """Values without noise that follow logit V = a log s - b log(1 - s) + c."""
    scores = np.random.default_rng(0).random(5000)
    truth = 1 / (1 + (1 - scores) ** 0.8 / scores**1.7 * np.exp(0.5))
    trials = first_steps(scores, truth, np.arange(5000), rollouts=1)
    assert np.abs(fit_curve(MapKind.beta, trials).at(scores) - truth).max() < 0.004
