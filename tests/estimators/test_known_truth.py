"""Intervals of `pooled` hold known values of simulated chains: in runs of few problems, and if the grader misses answers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainValues
from pipeline.estimators.labelling import chain_values
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.tree import Floats, tree_of
from tests.estimators.pooled import POOLED
from tests.synthetic.chains import Chains, chains_of, shapes
from tests.synthetic.families import FAMILIES
from tests.synthetic.replayed import Ledger, decide
from tests.synthetic.rollouts import RIGHT, WRONG, Block, Rollouts

pytestmark = pytest.mark.slow
MISSED = 0.05


class Missing(Rollouts):
    """Of the right answers, a share of MISSED is graded as incorrect."""

    def _block(self, number: int) -> Block:
        block = super()._block(number)
        missed = np.random.default_rng([5, number]).random(block.outcomes.shape) < MISSED
        block.outcomes[missed & (block.outcomes == RIGHT)] = WRONG
        return block


def labelled(chains: Chains, drawn: Rollouts, config: EstimatorConfig, unit: int) -> list[ChainValues]:
    """Values of runs of `unit` problems each, which know nothing of each other."""
    estimator, ledger, together = estimator_for(config), Ledger(drawn=drawn), shapes(chains)
    trees = [tree_of([shape]) for shape in together]
    assert estimator.learner is not None
    start = estimator.learner.initial()
    decide(trees, ledger, config, rollouts=16, state=start)
    found: list[ChainValues] = []
    for first in range(0, len(trees), unit):
        kernel = estimator.learner.learn(start, trees[first : first + unit], ledger.trials)
        found += chain_values(together[first : first + unit], ledger.trials, estimator, kernel)
    return found


def column(found: Sequence[ChainValues], name: str) -> Floats:
    return np.array([[getattr(step, name) for step in (chain.root, *chain.steps[:-1])] for chain in found])


def held(chains: Chains, found: Sequence[ChainValues]) -> Floats:
    return np.asarray((column(found, "low") <= chains.values) & (chains.values <= column(found, "high")))


@pytest.mark.parametrize("problems", [1, 2, 3])
@pytest.mark.parametrize("name", ["independent", "jump"])
def test_intervals_of_few_problems_hold_values_also_where_steps_say_nothing_of_each_other(
    name: str, problems: int
) -> None:
    family = FAMILIES[name](8)
    chains = chains_of(family, 192, 21)
    found = labelled(chains, Rollouts(family, chains, 21), POOLED, problems)
    assert held(chains, found).mean() >= 0.93
    assert (column(found, "high") - column(found, "low")).mean() < (0.6 if name == "independent" else 0.42)


def test_a_stated_miss_rate_makes_values_right_and_intervals_hold_them_near_one() -> None:
    family = FAMILIES["jump"](8)
    chains = chains_of(family, 192, 7)
    chains = replace(chains, outcomes=chains.outcomes & (np.random.default_rng(3).random(192) > MISSED))
    drawn, high = Missing(family, chains, 7), chains.values > 0.95
    silent, stated = (labelled(chains, drawn, replace(POOLED, miss_rate=rate), 32) for rate in (0.0, MISSED))
    assert held(chains, silent)[high].mean() < 0.9
    assert held(chains, stated)[high].mean() >= 0.95
    assert held(chains, stated).mean() >= 0.95
    bias = [(column(found, "value") - chains.values).mean() for found in (silent, stated)]
    assert abs(bias[1]) < 0.01 < -bias[0]
