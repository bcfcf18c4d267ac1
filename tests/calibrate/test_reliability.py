"""The figures of reliability: what they are by hand, and that the noise of rollouts is no miscalibration."""

import numpy as np
import pytest

from pipeline.analysis.calibrate.prefixes import Trials, mean_value
from pipeline.analysis.calibrate.report import LEAST, reliability
from tests.calibrate.known import Curve, first_steps, honest, overconfident, sample, true_ece

pytestmark = pytest.mark.slow


def trials(values: list[float], problems: list[int], rollouts: int = 4) -> Trials:
    return first_steps(np.full(len(values), 0.5), np.array(values), np.array(problems), rollouts=rollouts)


def test_figures_are_those_by_hand() -> None:
    found = reliability(np.array([0.1, 0.9, 0.95, 0.0]), trials([0.25, 0.5, 1.0, 0.0], [0, 1, 1, 2]), 10)
    outcomes = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]
    predicted = [0.1, 0.9, 0.95, 0.0]
    brier = np.mean([[(y - p) ** 2 for y in ys] for ys, p in zip(outcomes, predicted, strict=True)])
    cut = [min(max(p, LEAST), 1 - LEAST) for p in predicted]
    loss = np.mean([[-np.log(p if y else 1 - p) for y in ys] for ys, p in zip(outcomes, cut, strict=True)])
    assert found.brier.value == pytest.approx(brier)
    assert found.log_loss.value == pytest.approx(loss)
    assert found.bias.value == pytest.approx(np.mean(predicted) - 0.4375)
    assert (found.prefixes, found.problems) == (4, 3)
    # bins 0.0, 0.1 and 0.9
    assert found.ece_uncorrected == pytest.approx((0.15 + 0 + abs(0.9 + 0.95 - 1.5)) / 4)
    assert [(each.low, each.prefixes) for each in found.bins] == [(0.0, 1), (0.1, 1), (0.9, 2)]
    assert found.bins[2].value.value == pytest.approx(0.75)


@pytest.mark.parametrize("samples", [10, pytest.param(30, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("rollouts", [1, 8])
def test_noise_of_rollouts_is_not_taken_for_miscalibration(rollouts: int, samples: int) -> None:
    found = [
        reliability(each.trials.scores, each.trials, 10)
        for each in (sample(honest, seed, problems=150, rollouts=rollouts) for seed in range(samples))
    ]
    corrected = np.mean([each.ece.value for each in found])
    plain = np.mean([each.ece_uncorrected for each in found])
    assert corrected < 0.7 * plain
    assert np.mean([each.ece.low == 0 for each in found]) >= 0.9
    biases = [each.bias for each in found]
    held = [each.low <= 0 <= each.high for each in biases if each.low is not None and each.high is not None]
    assert np.mean(held) >= 0.86


@pytest.mark.parametrize("samples", [12, pytest.param(40, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("curve", "most_off"), [(overconfident, 0.005), (lambda scores: 0.95 * scores, 0.006)])
def test_the_ece_is_the_true_one_and_its_interval_holds_it(curve: Curve, most_off: float, samples: int) -> None:
    large = sample(curve, 99, problems=5_000)
    truth = true_ece(large.trials.scores, large.truth)
    found = [
        reliability(each.trials.scores, each.trials, 10).ece
        for each in (sample(curve, seed, problems=200) for seed in range(samples))
    ]
    assert np.mean([each.value for each in found]) == pytest.approx(truth, abs=most_off)
    held = [each.low <= truth <= each.high for each in found if each.low is not None and each.high is not None]
    assert len(held) == len(found)
    assert np.mean(held) >= 0.88


def test_more_rollouts_do_not_make_a_prefix_count_more() -> None:
    few = reliability(np.array([0.2, 0.8] * 20), trials([0.0, 1.0] * 20, list(range(40)), rollouts=1), 10)
    many = reliability(np.array([0.2, 0.8] * 20), trials([0.0, 1.0] * 20, list(range(40)), rollouts=100), 10)
    assert (few.brier, few.ece) == (many.brier, many.ece)


def test_a_single_problem_has_figures_without_intervals() -> None:
    found = reliability(np.array([0.2, 0.8]), trials([0.0, 1.0], [3, 3]), 10)
    assert found.brier.value is not None
    assert (found.brier.low, found.ece.low) == (None, None)
    assert mean_value(trials([0.25], [0])).high == 1
