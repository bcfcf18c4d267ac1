"""Values of promoted prefixes have no bias, and `grow=errors` locates more first errors than OmegaPRM's procedure."""

import pytest

from pipeline.engines.oracle_tree import Shape
from pipeline.pickers.registry import picker_for
from tests.pickers.first_errors import KNOWS, TRUE, measured_run, spent
from tests.pickers.handmade import settings_for
from tests.pickers.simulated import Bins, Simulation, TreeWorld

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("threshold", [0.5, 0.1])
def test_errors_are_located_for_fewer_tokens(threshold: float) -> None:
    world = TreeWorld(Shape(spread=1.0), seed=5)
    base = sum(each.tokens for each in measured_run(world))
    found = {arm: spent(arm, world, threshold, base // 4) for arm in ("errors", "omegaprm", "bisect", KNOWS)}
    assert all(each.tokens <= 1.5 * base / 4 for each in found.values())
    assert found["errors"].kinds[TRUE] >= 8
    assert found["errors"].rate() > 1.3 * found["omegaprm"].rate()
    assert found["errors"].rate() > 1.3 * found["bisect"].rate()
    assert found[KNOWS].rate() > found["errors"].rate()


BINS = 5


@pytest.mark.parametrize(
    ("pick", "problems"), [pytest.param("pairs", 400, marks=pytest.mark.nightly), ("omegaprm", 150)]
)
def test_own_rollouts_are_fair_and_those_that_led_to_a_promotion_are_not(pick: str, problems: int) -> None:
    """A reader who counted the latter would be seen, alone and beside a prefix's own ones."""
    simulation = Simulation(picker_for(settings_for(pick)))
    own, both, passed = Bins(BINS), Bins(BINS), Bins(BINS)
    for number in range(problems):
        for each in simulation.grown(number):
            own.add(each.value, each.correct, each.graded)
            both.add(each.value, each.correct + each.passed_correct, each.graded + each.passed_graded)
            passed.add(each.value, each.passed_correct, each.passed_graded)
    assert min(own.sizes) > 30
    assert abs(own.score()) < 3
    assert max(map(abs, own.scores())) < 3
    assert max(map(abs, both.scores())) > 3.5
    assert max(map(abs, passed.scores())) > 5
