"""The labels that a user gets without choosing anything, on chains whose values are known."""

import numpy as np
import pytest

from tests.settings import compose_label
from tests.synthetic.chains import Chains, chains_of
from tests.synthetic.families import FAMILIES
from tests.synthetic.judged import HardLabels, falls, judged
from tests.synthetic.replayed import Replayed, replay
from tests.synthetic.rollouts import Rollouts

pytestmark = pytest.mark.slow

STEPS, COUNT, SEED, FIXED = 8, 192, 11, 8


def by_default(chains: Chains, drawn: Rollouts, *overrides: str) -> Replayed:
    config = compose_label(["data=sample", "policy=oracle", "run_dir=unused", *overrides])
    return replay(chains, drawn, config.estimator, rollouts=config.sampling.rollouts)


@pytest.fixture(scope="module", params=["jump", "fatal"])
def both(request: pytest.FixtureRequest) -> tuple[HardLabels, HardLabels]:
    """By default, and by eight rollouts of every prefix with the rule `any`."""
    family = FAMILIES[request.param](STEPS)
    chains = chains_of(family, COUNT, SEED)
    drawn = Rollouts(family, chains, SEED)
    said = by_default(chains, drawn), by_default(chains, drawn, "estimator=fixed", f"sampling.rollouts={FIXED}")
    ours, fixed = (
        judged(chains, each, request.param, name) for each, name in zip(said, ("pooled", "fixed"), strict=True)
    )
    return ours, fixed


def test_bad_inner_steps_get_a_0_as_precisely_as_with_eight_rollouts_of_each_for_less(
    both: tuple[HardLabels, HardLabels],
) -> None:
    ours, fixed = both
    assert ours.recall >= 0.78
    assert ours.f1 >= 0.5
    assert ours.precision >= fixed.precision - 0.04
    # Before anything is learned, each prefix gets a rollout, and all units of so small a run begin then.
    assert ours.tokens <= 0.7 * fixed.tokens
    assert ours.rmse <= fixed.rmse


def test_claims_of_the_error_are_honest(both: tuple[HardLabels, HardLabels]) -> None:
    ours, _ = both
    assert ours.error_over_claim is not None
    assert 0.6 <= ours.error_over_claim <= 1.2
    assert ours.covered >= 0.8


def test_the_goal_locate_finds_more_falls() -> None:
    family = FAMILIES["jump"](STEPS)
    chains = chains_of(family, 256, SEED)
    drawn = Rollouts(family, chains, SEED)
    usual, locate = (
        judged(chains, by_default(chains, drawn, "sampling.rollouts=16", f"estimator.goal={goal}"), "jump", "pooled")
        for goal in ("train", "locate")
    )
    assert locate.located >= usual.located + 0.05
    assert locate.rmse < usual.rmse


def test_the_largest_fall_is_that_of_a_value() -> None:
    rows, at = falls(np.array([[0.9, 0.8, 0.1], [0.5, 0.4, 0.35], [0.2, 0.9, 0.3]]))
    assert rows.tolist() == [0, 2]
    assert at.tolist() == [1, 1]
