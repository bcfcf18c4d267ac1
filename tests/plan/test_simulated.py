"""Simulated numbers of rollouts of the estimators, checked against known ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.analysis.plan.expected import BelievedValues, SimulatedCost, simulate
from pipeline.core.records import ChainShape
from pipeline.estimators.base import Estimator
from pipeline.estimators.registry import ESTIMATORS, estimator_for
from pipeline.estimators.tree import Tree, trees_of
from tests.settings import estimator_settings


def trees(problems: int, steps: int) -> list[Tree]:
    return trees_of(
        [
            ChainShape(prefix_ids=tuple(f"{problem}.{step}" for step in range(steps + 1)), outcome=False)
            for problem in range(problems)
        ]
    )


def initial(wanted: Estimator) -> Any:
    return None if wanted.learner is None else wanted.learner.initial()


def spent(name: str, rate: float, *, problems: int = 200, rollouts: int = 8, seed: int = 0) -> list[SimulatedCost]:
    forest = trees(problems, steps=4)
    known = {prefix: BelievedValues(mean=rate, sd=0.0, tokens=10) for tree in forest for prefix in tree.prefix_ids}
    wanted = estimator_for(ESTIMATORS.load(name).adapt(estimator_settings("fixed")))
    rng = np.random.default_rng(seed)
    return simulate(forest, known, rollouts=rollouts, estimator=wanted, state=initial(wanted), rng=rng)


def test_fixed_takes_its_number_of_every_prefix() -> None:
    assert spent("fixed", 0.3, problems=2) == [SimulatedCost(rollouts=32, tokens=320.0)] * 2


def test_first_success_takes_as_many_as_a_cut_geometric_distribution() -> None:
    rate, most = 0.3, 8
    each = sum((1 - rate) ** issued for issued in range(most))
    found = np.mean([one.rollouts for one in spent("first_success", rate)]) / 4
    assert found == pytest.approx(each, rel=0.05)


def test_bisect_takes_two_probes_of_four_steps() -> None:
    assert np.mean([one.rollouts for one in spent("bisect", 1.0)]) == 2
    assert np.mean([one.rollouts for one in spent("bisect", 0.0)]) == 16


def test_pooled_stays_within_what_fixed_takes() -> None:
    assert max(one.rollouts for one in spent("pooled", 0.5, problems=20)) <= 32


@example("fixed", 5e-324, 0.5, 0)
@given(st.sampled_from(list(ESTIMATORS.ours)), st.floats(0, 1), st.floats(0, 0.6), st.integers(0, 100))
def test_whatever_is_believed_a_simulation_ends_within_the_rollouts_there_are(
    name: str, mean: float, sd: float, seed: int
) -> None:
    forest = trees(3, steps=3)
    known = {prefix: BelievedValues(mean=mean, sd=sd, tokens=5) for tree in forest for prefix in tree.prefix_ids}
    wanted = estimator_for(ESTIMATORS.load(name).adapt(estimator_settings("fixed")))
    rng = np.random.default_rng(seed)
    for one in simulate(forest, known, rollouts=4, estimator=wanted, state=initial(wanted), rng=rng):
        assert 0 <= one.rollouts <= 12
        assert one.tokens == 5 * one.rollouts
