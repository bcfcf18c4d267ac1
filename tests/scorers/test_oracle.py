"""The oracle scorer: its truth is the oracle policy's, its AUC and its miscalibration are those that the settings choose."""

import asyncio
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.ids import content_id
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.engines.oracle import value_of
from pipeline.scorers.base import wrong_scores
from pipeline.scorers.oracle import Oracle, logit
from pipeline.scorers.settings import OracleScorerConfig, OracleScores

PREFIXES = 6000


def chains(count: int, steps: int = 4) -> list[ChainText]:
    return [
        ChainText(
            chain_id=content_id(str(number)),
            problem_id=content_id("problem", str(number)),
            problem="p",
            steps=("s",) * steps,
            prefix_ids=tuple(content_id("prefix", str(number), str(at)) for at in range(steps)),
        )
        for number in range(count)
    ]


def scores(
    *, newest_only: bool = False, count: int = PREFIXES // 4, **settings: float
) -> tuple[np.ndarray, np.ndarray]:
    """The scores and the true values of many prefixes, in the same order."""
    oracle = OracleScores(**settings)  # type: ignore[arg-type]  # numbers, as the settings want them
    engine = Oracle(OracleScorerConfig(oracle=oracle)).engine(Surroundings(), newest_only=newest_only)
    asked = chains(count)
    found = asyncio.run(engine.score(asked))
    assert not wrong_scores(found, asked)
    values = [
        value_of(oracle.seed, oracle.spread, chain.problem_id, prefix) for chain in asked for prefix in chain.prefix_ids
    ]
    return np.array([score for each in found for score in each.scores], float), np.array(values)


def auc(got: np.ndarray, good: np.ndarray) -> float:
    """The share of pairs of a good and a bad step in the right order."""
    order = np.argsort(got)
    ranks = np.empty(len(got))
    ranks[order] = np.arange(1, len(got) + 1)
    positive = good.sum()
    return float((ranks[good].sum() - positive * (positive + 1) / 2) / (positive * (len(good) - positive)))


@pytest.mark.parametrize("wanted", [0.6, 0.75, 0.9, 0.98])
@pytest.mark.parametrize("slope", [1.0, 3.0])
def test_the_auc_is_the_chosen_one(wanted: float, slope: float) -> None:
    got, values = scores(auc=wanted, slope=slope, shift=0.7)
    # Steps of one chain share a problem, so this is a bit more than independent prefixes would give.
    assert auc(got, values > 0.5) == pytest.approx(wanted, abs=0.02)


def test_without_noise_and_miscalibration_scores_are_the_true_values() -> None:
    got, values = scores()
    inside = (values > 0.001) & (values < 0.999)
    assert got[inside] == pytest.approx(values[inside], abs=1e-12)


@given(st.floats(0.2, 5), st.floats(-3, 3))
def test_slope_and_shift_are_those_of_the_log_odds(slope: float, shift: float) -> None:
    got, values = scores(slope=slope, shift=shift, count=5)
    for score, value in zip(got, values, strict=True):
        assert math.log(score / (1 - score)) == pytest.approx(slope * logit(value) + shift, abs=1e-6)


def test_equal_prefixes_have_equal_scores_and_another_seed_has_others() -> None:
    assert (scores(auc=0.7)[0] == scores(auc=0.7)[0]).all()
    assert not (scores(auc=0.7)[0] == scores(auc=0.7, seed=1)[0]).any()


def test_the_newest_step_alone_has_the_score_that_it_has_in_the_chain() -> None:
    whole, newest = scores(auc=0.8)[0].reshape(-1, 4), scores(auc=0.8, newest_only=True)[0].reshape(-1, 4)
    assert (whole[:, -1] == newest[:, -1]).all()
    assert np.isnan(newest[:, :-1]).all()
