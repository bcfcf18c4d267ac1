"""Chains whose values are known exactly: they are what the tests and benches of estimators take them for, and estimators that
label them are unbiased and honest."""

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import Interval
from pipeline.core.records import Finish, RolloutOutcome, Trials, Verdict
from pipeline.estimators.labelling import chain_values
from pipeline.estimators.pooled.estimator import Pooled
from pipeline.estimators.pooled.learning import KernelLearner
from pipeline.estimators.settings import PooledConfig
from pipeline.estimators.tree import tree_of, trials_of
from tests.settings import estimator_settings
from tests.synthetic.chains import chains_of, shapes
from tests.synthetic.families import FAMILIES
from tests.synthetic.measured import carried, sampled
from tests.synthetic.policy import Policy, exact_values
from tests.synthetic.replayed import Ledger, decide, replay
from tests.synthetic.rollouts import Rollouts

# Of a normal variable. The seed is fixed, so the test either always passes or always fails.
FAR = 4.0


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(1, 4))
def test_values_are_those_of_all_ways_to_the_end(seed: int, steps: int, states: int) -> None:
    random = np.random.default_rng(seed)
    moves = random.random((states, states))
    policy = Policy(steps=steps, moves=moves / moves.sum(axis=1, keepdims=True), right=random.random(states))
    values = exact_values(policy)
    assert values.shape == (steps, states)
    for written, start in product(range(steps), range(states)):
        right = 0.0
        for way in product(range(states), repeat=steps - 1 - written):
            path = (start, *way)
            chance = np.prod([policy.moves[a, b] for a, b in pairwise(path)])
            right += float(chance) * policy.right[path[-1]]
        assert values[written, start] == pytest.approx(right)


@pytest.mark.parametrize("name", ["jump", "flaky"])
def test_fixed_says_the_share_of_the_right_ones_of_n_rollouts_and_that_is_unbiased(name: str) -> None:
    family = FAMILIES[name](4)
    chains = chains_of(family, 600, 3)
    drawn = Rollouts(family, chains, 3)
    said = replay(chains, drawn, estimator_settings("fixed"), rollouts=8)
    shares = sampled(drawn.first(8), np.full(chains.states.shape, 8))
    assert (said.rollouts == 8).all()
    assert (said.tokens == shares.tokens).all()
    assert carried(said.unbiased) == pytest.approx(shares.values)
    error = (said.unbiased - chains.values)[~np.isnan(said.unbiased)]
    assert abs(error.mean()) < FAR * error.std() / np.sqrt(error.size)


def test_pooled_pays_less_and_claims_what_it_errs() -> None:
    family = FAMILIES["jump"](8)
    chains = chains_of(family, 96, 3)
    drawn = Rollouts(family, chains, 3)
    said = replay(chains, drawn, PooledConfig(interval=Interval.posterior, target_sd=0.1), rollouts=16)
    standard = sampled(drawn.first(8), np.full(chains.states.shape, 8))
    assert said.by_mean.rmse(chains.values) < standard.rmse(chains.values)
    assert said.by_mean.tokens_per_step < 0.7 * standard.tokens_per_step
    assert np.mean(np.abs(said.mean - chains.values) <= 1.96 * said.sd) > 0.85


def test_what_all_units_teach_is_worth_more_than_what_each_teaches() -> None:
    family, config = FAMILIES["fatal"](8), PooledConfig(interval=Interval.posterior, target_sd=0.1)
    chains = chains_of(family, 192, 3)
    drawn = Rollouts(family, chains, 3)
    ledger, estimator, learner = Ledger(drawn=drawn), Pooled(config), KernelLearner()
    prior, alone = learner.initial(), []
    for unit in (shapes(chains)[start : start + 6] for start in range(0, chains.count, 6)):
        trees = [tree_of([shape]) for shape in unit]
        decide(trees, ledger, config, rollouts=16, state=prior)
        taught = learner.learn(prior, trees, ledger.trials)
        found = chain_values(unit, ledger.trials, estimator, taught)
        alone += [[each.root.value, *(step.value for step in each.steps[:-1])] for each in found]
    said = replay(chains, drawn, config, rollouts=16, unit=6)
    assert said.tokens.sum() == sum(trials.counts.tokens for trials in ledger.trials.values())
    by_units = np.sqrt(((np.array(alone) - chains.values) ** 2).mean())
    assert said.by_mean.rmse(chains.values) < 0.95 * by_units


def _outcome(issue: int, verdict: Verdict) -> RolloutOutcome:
    return RolloutOutcome(
        prefix_id="p",
        issue_index=issue,
        round=issue // 3,
        reached_prefix_id=None,
        finish=Finish.STOP,
        n_tokens=10 + issue,
        verdict=verdict,
    )


VERDICTS = st.sampled_from([Verdict.CORRECT, Verdict.INCORRECT, Verdict.TIMEOUT])


@given(st.lists(VERDICTS, min_size=1, max_size=9), st.data())
def test_the_order_of_completion_changes_nothing_and_a_gap_hides_what_is_behind_it(
    verdicts: Sequence[Verdict], data: st.DataObject
) -> None:
    issued = [_outcome(issue, verdict) for issue, verdict in enumerate(verdicts)]
    assert trials_of(data.draw(st.permutations(issued))) == trials_of(issued)
    missing = data.draw(st.integers(0, len(issued) - 1))
    came = [outcome for outcome in issued if outcome.issue_index != missing]
    assert trials_of(came).get("p", Trials()) == trials_of(issued[:missing]).get("p", Trials())
