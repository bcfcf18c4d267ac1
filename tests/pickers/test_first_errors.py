"""`grow=errors` locates more first errors for its tokens than OmegaPRM's procedure, where all values are known."""

import pytest

from pipeline.engines.oracle_tree import Shape
from tests.pickers.first_errors import KNOWS, TRUE, measured_run, spent
from tests.pickers.simulated import TreeWorld

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
