"""Runs of the adaptive estimators: after any interruption, a restarted run ends with the same result as an undisturbed run."""

from pathlib import Path
from random import Random
from unittest.mock import patch

import polars as pl
import pytest

from pipeline.config.label import LabelConfig
from pipeline.core import failpoints
from pipeline.core.errors import Interrupted
from pipeline.core.failpoints import ARMED, Injected
from pipeline.core.progress import Summary
from pipeline.engines import oracle
from pipeline.runtime.stop import StopSignal
from tests.runtime.adaptive import labels, log, proved, settings, sums
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

ADAPTIVE = ("first_success", "bisect", "pooled")
ROWS = sums(3)
POINTS = (
    "commit.before",
    "commit.after",
    "driver.arrange",
    "driver.planned",
    "driver.receipt",
    "driver.submitted",
    "worker.complete",
    "worker.flush",
    "worker.opened",
)
FAULTS = {
    "an engine that dies": ("policy=lab", "policy.lab.fail_after=9"),
    "an engine that hangs": (
        "policy=lab",
        "policy.lab.hang_after=9",
        "run.stall_seconds=0.3",
        "run.progress_seconds=0.1",
    ),
    "an engine that answers wrongly": ("policy=lab", "policy.lab.wrong_after=9"),
}
UNITS = {"one unit": ("run.unit_problems=100",), "several units": ("run.unit_problems=1", "run.units_in_flight=1")}
PAIRS = [
    pytest.param((name, units), marks=() if at % len(UNITS) == turn % len(UNITS) else pytest.mark.nightly)
    for at, name in enumerate(ADAPTIVE)
    for turn, units in enumerate(UNITS)
]
"""`make test` takes each of both at least once, `make nightly` all pairs."""
QUICK = ("run.flush_seconds=0.01", "run.attempts=50", "run.max_failures=1000", "sampling.rollouts=3")


class StopAfter(StopSignal):
    """Stops the run, as SIGTERM does, after `looks` calls of `check`."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    def check(self) -> None:
        self._looks -= 1
        if self._looks < 0:
            raise Interrupted("a test stops the run")


@pytest.fixture(scope="module", params=PAIRS, ids=" in ".join)
def reference(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[str, ...], Path]:
    """The settings of a run, and the folder of an undisturbed run."""
    name, units = request.param
    folder = tmp_path_factory.mktemp("reference")
    asked = (f"estimator={name}", *UNITS[units], *QUICK)
    label_in_process(settings(folder, ROWS, *asked))
    proved(folder)
    return asked, folder


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[str, ...], Path]:
    """As `reference`, for the estimator with the most rounds."""
    folder = tmp_path_factory.mktemp("pooled")
    asked = ("estimator=pooled", *UNITS["one unit"], *QUICK)
    label_in_process(settings(folder, ROWS, *asked))
    return asked, folder


def same(folder: Path, expected: Path) -> None:
    assert log(folder) == log(expected)
    assert labels(folder).equals(labels(expected))
    proved(folder)


def broken_off(config: LabelConfig, point: str, hit: int, *, looks: int) -> Summary | None:
    """A start that ends at the given point, if it reaches it."""
    failpoints.arm({ARMED: f"{point}:raise:{hit}"})
    try:
        return label_in_process(config, StopAfter(looks))
    except (Injected, Interrupted):
        return None
    finally:
        failpoints.arm({})


def test_a_run_that_was_broken_off_anywhere_ends_as_one_that_was_not(
    reference: tuple[tuple[str, ...], Path], tmp_path: Path
) -> None:
    asked, expected = reference
    luck = Random(str(asked))
    config = settings(tmp_path, ROWS, *asked)
    with patch.object(oracle, "_CHUNK", 2):
        for _ in range(6):
            broken_off(config, luck.choice(POINTS), luck.randint(1, 6), looks=luck.choice((3, 1000)))
    label_in_process(config)
    same(tmp_path, expected)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_gets_over_engines_as_if_nothing_had_befallen(
    pooled: tuple[tuple[str, ...], Path], tmp_path: Path, fault: str
) -> None:
    asked, expected = pooled
    with patch.object(oracle, "_CHUNK", 4):
        label_in_process(settings(tmp_path, ROWS, *asked, *FAULTS[fault]))
    same(tmp_path, expected)


def test_a_request_that_kills_engines_is_found_and_written_off_and_the_rest_goes_on(
    pooled: tuple[tuple[str, ...], Path], tmp_path: Path
) -> None:
    asked, expected = pooled
    deadly = min(log(expected))
    summary = label_in_process(
        settings(tmp_path, ROWS, *asked, "policy=lab", f"policy.lab.poison={deadly}", "run.attempts=1")
    )
    assert summary.totals.engine_failed == 1
    assert log(tmp_path)[deadly][1] == "crashed"
    proved(tmp_path)


def test_a_request_that_is_refused_is_ungraded_and_the_rest_goes_on(
    pooled: tuple[tuple[str, ...], Path], tmp_path: Path
) -> None:
    asked, expected = pooled
    refused = min(log(expected))
    summary = label_in_process(settings(tmp_path, ROWS, *asked, "policy=lab", f"policy.lab.refuse={refused}"))
    assert summary.totals.engine_failed == 1
    assert summary.totals.ungraded == 1
    proved(tmp_path)


def test_more_rollouts_are_added_to_those_that_are_there(
    reference: tuple[tuple[str, ...], Path], tmp_path: Path
) -> None:
    asked, expected = reference
    few = settings(tmp_path, ROWS, *asked, "sampling.rollouts=2")
    label_in_process(few)
    before = log(tmp_path)
    label_in_process(settings(tmp_path, ROWS, *asked))
    assert before.items() <= log(tmp_path).items()
    proved(tmp_path)
    if "estimator=pooled" not in asked:
        assert {rollout: text for rollout, (text, *_) in log(tmp_path).items()} == {
            rollout: text for rollout, (text, *_) in log(expected).items()
        }
        assert labels(tmp_path).equals(labels(expected))


def test_each_unit_begins_with_what_the_others_have_learned(tmp_path: Path) -> None:
    label_in_process(settings(tmp_path, ROWS, "estimator=pooled", *UNITS["several units"], *QUICK))
    learned = pl.read_parquet(tmp_path / "run" / "kernels" / "*.parquet")["chains"].to_list()
    assert sorted(learned) == [2, 4, 6, 6]  # and what all have learned together
