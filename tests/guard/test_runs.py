"""Runs of the oracle come to what they came to: tables, verdicts, other labels, and exports."""

from pathlib import Path

import pytest

from tests.guard.record import stored
from tests.guard.runs import ESTIMATORS, PARTS, PROCESSBENCH, everything

pytestmark = pytest.mark.slow

FOLLOWING = {"fixed": PARTS, "pooled": ("changes",)}
"""What of the runs is looked at in `make test`, besides the runs."""


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_run_over_the_sample_comes_to_the_same(estimator: str, tmp_path: Path) -> None:
    following = FOLLOWING.get(estimator, ())
    found = everything(tmp_path, "sample", [estimator], following)[estimator]
    expected = stored(f"runs-sample-{estimator}")
    assert found == {part: expected[part] for part in ("label", *following)}


@pytest.mark.nightly
@pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if FOLLOWING.get(name) != PARTS])
def test_all_that_follows_from_a_run_over_the_sample_comes_to_the_same(estimator: str, tmp_path: Path) -> None:
    found = everything(tmp_path, "sample", [estimator])[estimator]
    assert found == stored(f"runs-sample-{estimator}")


@pytest.mark.nightly
@pytest.mark.skipif(not PROCESSBENCH.is_file(), reason="the data are not here")
def test_runs_over_processbench_come_to_the_same(tmp_path: Path) -> None:
    """Chains that models wrote."""
    for name, found in everything(tmp_path, "processbench", ESTIMATORS).items():
        assert found == stored(f"runs-processbench-{name}")
