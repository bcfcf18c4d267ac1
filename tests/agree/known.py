"""Chains whose scores come from a known law, so that every figure of `agree scores=...` has a known true value; and how
often its intervals hold that value.

Steps that people call good have scores with density 2x, bad ones 2(1 - x), independent of each other. One chain in two has
a first error, each of the STEPS steps equally likely, and its later steps are like bad ones. In chains with a class, as of
PRMBench, each step is bad with probability BAD. At a threshold of 1/2 a good step is called good with probability 3/4, a
bad one bad as often.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pipeline.analysis.agree.classes import error_classes
from pipeline.analysis.agree.human import NO_ERROR, ChainPair, goods_until
from pipeline.analysis.agree.judged import Judged, at_threshold
from pipeline.analysis.agree.step_scores import lowest_on_last, step_figures
from pipeline.core.statistics import Interval, Resampling
from tests.agree.pairs import human, labelled

STEPS = 4
BAD = 0.3
THRESHOLD = 0.5
SUBSETS = ("a", "b", "c")
_KEPT = 1 - THRESHOLD**2
"""The probability that a good step is called good, and that a bad one is called bad."""
FOUND = float(np.mean([_KEPT**error * _KEPT for error in range(STEPS)]))
CLEARED = _KEPT**STEPS
F1 = 2 * FOUND * CLEARED / (FOUND + CLEARED)
AUC = 5 / 6
BRIER = 1 / 6
PRM_SCORE = (
    2 * (1 - BAD) * _KEPT / (2 * (1 - BAD) * _KEPT + (1 - _KEPT)) + 2 * BAD * _KEPT / (2 * BAD * _KEPT + (1 - _KEPT))
) / 2
TRUTH = {
    "error accuracy": FOUND,
    "correct accuracy": CLEARED,
    "F1": F1,
    "mean F1 of subsets": F1,
    "AUC": AUC,
    "Brier score": BRIER,
    "lowest on last step, chains without an error": 1 / STEPS,
    "PRMScore": PRM_SCORE,
}


def first_error_chains(rng: np.random.Generator, n_chains: int) -> list[ChainPair]:
    errors = np.where(rng.random(n_chains) < 0.5, rng.integers(STEPS, size=n_chains), NO_ERROR).tolist()
    scores = rng.random((n_chains, STEPS))
    good = np.array([[error == NO_ERROR or at < error for at in range(STEPS)] for error in errors])
    drawn = np.where(good, np.sqrt(scores), 1 - np.sqrt(scores)).tolist()
    return [
        ChainPair(human=human(goods_until(error, STEPS)), labelled=labelled(row))
        for error, row in zip(errors, drawn, strict=True)
    ]


def classed_chains(rng: np.random.Generator, n_chains: int) -> list[ChainPair]:
    good = rng.random((n_chains, STEPS)) >= BAD
    scores = np.sqrt(rng.random((n_chains, STEPS)))
    drawn = np.where(good, scores, 1 - scores)
    return [
        ChainPair(human=replace(human(goods), error_class="circular"), labelled=labelled(row))
        for goods, row in zip(good.tolist(), drawn.tolist(), strict=True)
    ]


def figures(rng: np.random.Generator, n_chains: int, resampling: Resampling) -> Iterator[tuple[str, Interval]]:
    """The figures of one sample, with the names of TRUTH."""
    pairs = first_error_chains(rng, n_chains)
    subsets = tuple(SUBSETS[at % len(SUBSETS)] for at in range(n_chains))
    judged = at_threshold(Judged(pairs=tuple(pairs), subsets=subsets, resampling=resampling), THRESHOLD)
    steps = step_figures(pairs, 10, resampling)
    classes = error_classes(classed_chains(rng, n_chains), THRESHOLD, resampling)
    assert classes is not None
    yield "error accuracy", judged.total.error_accuracy
    yield "correct accuracy", judged.total.correct_accuracy
    yield "F1", judged.total.f1
    yield "mean F1 of subsets", judged.mean
    yield "AUC", steps.auc
    yield "Brier score", steps.brier
    yield "lowest on last step, chains without an error", lowest_on_last(pairs, resampling).correct
    yield "PRMScore", classes.total.prm_score
