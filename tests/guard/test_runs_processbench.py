"""Runs of the oracle over chains that models wrote come to what they came to."""

from pathlib import Path

import pytest

from tests.guard.record import stored
from tests.guard.runs import ESTIMATORS, PROCESSBENCH, everything
from tests.guard.terminal import Terminal

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(not PROCESSBENCH.is_file(), reason="the data are not here")]


def test_runs_over_processbench_come_to_the_same(terminal: Terminal, tmp_path: Path) -> None:
    for name, found in everything(terminal, tmp_path, "processbench", ESTIMATORS).items():
        assert found == stored(f"runs-processbench-{name}")
