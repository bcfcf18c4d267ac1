"""Runs of the oracle over the shipped sample come to what they came to: tables, verdicts, other labels, and exports."""

from typing import Any

import pytest

from tests.guard.record import stored
from tests.guard.runs import everything
from tests.guard.terminal import Terminal

pytestmark = pytest.mark.slow

Found = dict[str, dict[str, Any]]
ESTIMATORS = ("fixed", "bisect")


@pytest.fixture(scope="module")
def found(terminal: Terminal, tmp_path_factory: pytest.TempPathFactory) -> Found:
    return everything(terminal, tmp_path_factory.mktemp("sample"), "sample", ESTIMATORS)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("part", ["label", "changes", "exports"])
def test_a_run_over_the_sample_comes_to_the_same(part: str, estimator: str, found: Found) -> None:
    assert found[estimator][part] == stored(f"runs-sample-{estimator}")[part]
