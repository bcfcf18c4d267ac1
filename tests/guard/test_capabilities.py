"""Search, judge, check, score, grow, calibrate, agree, select, plan, audit and train come to what they did."""

from typing import Any

import pytest

from tests.guard.capabilities import GOLDEN, Step, all_golden
from tests.guard.digests import differences
from tests.guard.record import stored

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return all_golden(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("step", [pytest.param(step, id=step.name) for step in GOLDEN])
def test_a_command_comes_to_the_same(step: Step, found: dict[str, Any]) -> None:
    if not step.possible:
        pytest.skip(f"{step.needs} is not installed")
    assert not list(differences(found[step.capability][step.which], stored(step.capability).get(step.which, {})))
