"""Intervals of the figures hold the true value in 95 of 100 samples, within 2, where the truth is known. Here with the
statistics of the figures on drawn counts, which is fast."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from pipeline.analysis.agree.classes import prm_score
from pipeline.analysis.agree.rulings import f1
from pipeline.analysis.comparison import auc, bootstrap, ratio, wilson
from pipeline.core.statistics import Floats, Interval
from tests.agree.known import AUC, BAD, BRIER, CLEARED, F1, FOUND, PRM_SCORE, STEPS

pytestmark = pytest.mark.slow

CHAINS = 300
REPLICATES = 300
Rng = np.random.Generator


def f1_rows(rng: Rng) -> Floats:
    erroneous = rng.random(CHAINS) < 0.5
    hit = rng.random(CHAINS) < np.where(erroneous, FOUND, CLEARED)
    return np.stack([erroneous, erroneous & hit, ~erroneous, ~erroneous & hit], axis=-1).astype(np.float64)


def resampled(statistic: Callable[[Floats], Floats], rows: Floats, repeat: int) -> Interval:
    return bootstrap(rows, statistic, seed=repeat, resamples=REPLICATES)


def f1_of_all(rng: Rng, repeat: int) -> Interval:
    return resampled(f1, f1_rows(rng), repeat)


def mean_of_subsets(rng: Rng, repeat: int) -> Interval:
    rows = np.zeros((CHAINS, 3, 4))
    rows[np.arange(CHAINS), np.arange(CHAINS) % 3] = f1_rows(rng)
    return resampled(
        lambda sums: f1(sums.reshape(*sums.shape[:-1], 3, 4)).mean(axis=-1), rows.reshape(CHAINS, 12), repeat
    )


def classes(rng: Rng, repeat: int) -> Interval:
    cells = [(1 - BAD) * 0.75, BAD * 0.25, BAD * 0.75, (1 - BAD) * 0.25]
    return resampled(prm_score, rng.multinomial(STEPS, cells, size=CHAINS).astype(np.float64), repeat)


def brier(rng: Rng, repeat: int) -> Interval:
    squares = (1 - np.sqrt(rng.random((CHAINS, STEPS)))) ** 2
    labelled = rng.random((CHAINS, STEPS)) < 0.7
    return resampled(ratio, np.stack([(squares * labelled).sum(axis=1), labelled.sum(axis=1)], axis=-1), repeat)


def area(rng: Rng, _repeat: int) -> Interval:
    good = rng.random((CHAINS, STEPS)) < 0.7
    scores = np.sqrt(rng.random((CHAINS, STEPS)))
    chains = np.repeat(np.arange(CHAINS), STEPS)
    return auc(np.where(good, scores, 1 - scores).ravel(), good.ravel(), chains)


def accuracy(rng: Rng, _repeat: int) -> Interval:
    return wilson(int((rng.random(CHAINS // 2) < FOUND).sum()), CHAINS // 2)


@pytest.mark.parametrize("share", [0.3, pytest.param(1.0, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("figure", "truth", "repeats"),
    [
        (f1_of_all, F1, 1000),
        (mean_of_subsets, F1, 1000),
        (classes, PRM_SCORE, 1000),
        (area, AUC, 1000),
        (accuracy, FOUND, 3000),
        (brier, BRIER, 500),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_intervals_hold_the_truth_in_95_of_100_samples(
    figure: Callable[[Rng, int], Interval], truth: float, repeats: int, share: float
) -> None:
    """`share`: of the repeats. With fewer of them, the share that holds is known less exactly."""
    rng, repeats = np.random.default_rng(1), round(share * repeats)
    held = 0
    for repeat in range(repeats):
        found = figure(rng, repeat)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
    spare = 0.02 / math.sqrt(share)
    assert 0.95 - spare <= held / repeats <= 0.95 + spare
