"""Runs of the oracle over chains that models wrote come to what they came to."""

from pathlib import Path

import pytest

from tests.guard.doors import Doors
from tests.guard.record import stored
from tests.guard.runs import ESTIMATORS, PROCESSBENCH, everything

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not PROCESSBENCH.is_file(), reason="the data are not here"),
]


def test_runs_over_processbench_come_to_the_same(doors: Doors, tmp_path: Path) -> None:
    for name, found in everything(doors, tmp_path, "processbench", ESTIMATORS).items():
        assert found == stored(f"runs-processbench-{name}")
