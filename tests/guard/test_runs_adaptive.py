"""As `test_runs`, of the estimators that ask for rollouts where those before leave something to learn."""

from pathlib import Path

import pytest

from tests.guard.record import stored
from tests.guard.runs import everything
from tests.guard.terminal import Terminal

pytestmark = pytest.mark.slow

ESTIMATORS = ("pooled", "first_success")
MADE: dict[str, tuple[str, ...]] = {"pooled": ("changes",), "first_success": ()}
"""What of the runs is looked at in `make test`, besides the runs."""


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_run_over_the_sample_comes_to_the_same(estimator: str, terminal: Terminal, tmp_path: Path) -> None:
    found = everything(terminal, tmp_path, "sample", [estimator], MADE[estimator])[estimator]
    expected = stored(f"runs-sample-{estimator}")
    assert found == {part: expected[part] for part in ("label", *MADE[estimator])}


@pytest.mark.nightly
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_all_that_follows_from_a_run_over_the_sample_comes_to_the_same(
    estimator: str, terminal: Terminal, tmp_path: Path
) -> None:
    found = everything(terminal, tmp_path, "sample", [estimator])[estimator]
    assert found == stored(f"runs-sample-{estimator}")
