"""`grow=errors` locates more first errors for its tokens than OmegaPRM's procedure, where all values are known."""

from dataclasses import replace

import pytest

from tests.bench.grow_errors import KNOWS, SETTINGS, TRUE, spent
from tests.pickers.simulated import Growing, TreeWorld

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("threshold", [0.5, 0.1])
def test_errors_are_located_for_fewer_tokens(threshold: float) -> None:
    setting = replace(SETTINGS["decisive"], problems=25)
    world = TreeWorld(replace(setting.world, seed=5))
    base = sum(
        Growing(world, number, rollouts=setting.rollouts, chains=setting.chains).tokens
        for number in range(setting.problems)
    )
    found = {arm: spent(arm, world, setting, threshold, base // 4) for arm in ("errors", "omegaprm", "bisect", KNOWS)}
    assert all(each.tokens <= 1.5 * base / 4 for each in found.values())
    assert found["errors"].kinds[TRUE] >= 8
    assert found["errors"].rate() > 1.3 * found["omegaprm"].rate()
    assert found["errors"].rate() > 1.3 * found["bisect"].rate()
    assert found[KNOWS].rate() > found["errors"].rate()
