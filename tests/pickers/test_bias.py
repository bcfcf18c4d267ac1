"""The rollouts of promoted prefixes estimate their values without bias; those that led to the promotions would not."""

import pytest

from pipeline.pickers.registry import picker_for
from tests.pickers.handmade import settings_for
from tests.pickers.simulated import Bins, Simulation

pytestmark = pytest.mark.slow

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
