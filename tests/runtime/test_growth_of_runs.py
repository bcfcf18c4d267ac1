"""Growth together with everything else that a run can do: budgets, learning, editions, more rollouts, kills and damage."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from pipeline.analysis.relabel import relabel
from pipeline.analysis.status import run_status
from pipeline.config.changes import RelabelConfig
from pipeline.config.choices import LabelRule
from pipeline.core import failpoints
from pipeline.core.errors import InputError
from pipeline.core.failpoints import ARMED, Injected
from pipeline.storage.local import LocalStorage
from tests.conftest import write_rows
from tests.runtime.growing import assert_sound, audited, bare, chains, files, label, labels
from tests.settings import EstimatorChange

pytestmark = pytest.mark.slow

OLD = chains(1, 2, 3, 4)
GROWN = [*chains(9), *OLD, *chains(1, last=3), *chains(5, 6, 7)]


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.arm({})


def test_what_pooled_has_learned_reaches_new_units_and_leaves_old_ones(tmp_path: Path) -> None:
    one_by_one = ("estimator=pooled", "run.units_in_flight=1")
    label(tmp_path, OLD, *one_by_one)
    before = {name: files(tmp_path, name) for name in ("kernels", "rollouts")}
    label(tmp_path, GROWN, *one_by_one)
    assert before["rollouts"].items() <= files(tmp_path, "rollouts").items()
    # What all labels before were learned from is in aside/.
    assert before["kernels"].items() <= (files(tmp_path, "kernels") | files(tmp_path, "aside")).items()
    assert pl.read_parquet(tmp_path / "run" / "kernels" / "*.parquet")["chains"].max() == len(GROWN)
    assert_sound(tmp_path)


def test_the_budget_of_a_run_covers_what_is_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = (
        "estimator=pooled",
        "estimator.budget_unit=rollouts",
        "estimator.target_sd=0.01",
        "sampling.rollouts=50",
    )
    first = label(tmp_path, OLD, *settings, "estimator.run_budget=40")
    before = files(tmp_path, "rollouts")
    spent = label(tmp_path, GROWN, *settings, "estimator.run_budget=40")
    assert spent.totals.rollouts == first.totals.rollouts <= 40
    assert "estimator.run_budget" in capsys.readouterr().err
    assert before == files(tmp_path, "rollouts")
    assert label(tmp_path, GROWN, *settings, "estimator.run_budget=120").totals.rollouts > 60
    assert_sound(tmp_path)


def test_chains_are_drawn_and_filtered_for_new_problems_alone(tmp_path: Path) -> None:
    settings = ("sampling.keep=mixed", "sampling.solutions=3")
    first = label(tmp_path, [*bare(1, 2, 3, 4), *chains(5)], *settings)
    drawn = files(tmp_path, "solutions")
    grown = label(tmp_path, [*bare(1, 2, 3, 4, 5, 6), *chains(5, 2)], *settings)
    assert drawn.items() <= files(tmp_path, "solutions").items()
    solutions = pl.read_parquet(tmp_path / "run" / "solutions" / "*.parquet")
    assert sorted(solutions["draw"].to_list()) == sorted([0, 1, 2] * 6)
    assert grown.totals.rows == 8 == grown.totals.used + grown.totals.rejected
    assert grown.totals.rejected >= first.totals.rejected
    assert pl.read_parquet(tmp_path / "run" / "rollouts" / "*.parquet")["rollout_id"].is_unique().all()
    assert_sound(tmp_path)


def test_after_growth_the_labels_are_those_of_one_rule(tmp_path: Path) -> None:
    label(tmp_path, OLD)
    relabel(RelabelConfig(run_dir=str(tmp_path / "run"), estimator=EstimatorChange(rule=LabelRule.threshold)))
    grown = label(tmp_path, GROWN)
    assert "edition 0" in grown.labels
    assert "make it again with relabel" in grown.labels
    assert labels(tmp_path)["label_rule"].n_unique() == 1
    assert labels(tmp_path).height == len(GROWN)
    assert_sound(tmp_path)
    relabel(RelabelConfig(run_dir=str(tmp_path / "run"), estimator=EstimatorChange(rule=LabelRule.threshold)))
    assert labels(tmp_path).height == len(GROWN)
    assert labels(tmp_path)["label_rule"].unique().to_list() != ["any"]
    assert_sound(tmp_path)


@pytest.mark.parametrize(
    "point",
    [
        "commit.after",
        "driver.planned",
        *(
            pytest.param(point, marks=pytest.mark.nightly)
            for point in ("commit.before", "worker.complete", "driver.arrange")
        ),
    ],
)
def test_a_growth_that_dies_is_finished_by_the_next_start(tmp_path: Path, point: str) -> None:
    label(tmp_path / "whole", OLD)
    label(tmp_path / "whole", GROWN)
    more = [*GROWN, *chains(8)]
    label(tmp_path / "whole", more)
    expected = labels(tmp_path / "whole")
    label(tmp_path / "killed", OLD)
    deaths = 0
    for rows in (GROWN, more):
        for hit in range(1, 20):
            failpoints.arm({ARMED: f"{point}:raise:{hit}"})
            try:
                label(tmp_path / "killed", rows)
            except Injected:
                deaths += 1
            else:
                break
    failpoints.arm({})
    assert deaths > 2 or not point.startswith("commit")
    label(tmp_path / "killed", more)
    assert labels(tmp_path / "killed").equals(expected)
    assert_sound(tmp_path / "killed")


def test_a_growth_while_the_first_part_is_unfinished(tmp_path: Path) -> None:
    failpoints.arm({ARMED: "commit.after:raise:2"})
    with pytest.raises(Injected):
        label(tmp_path, OLD, "run.units_in_flight=1")
    failpoints.arm({})
    status = run_status(LocalStorage(tmp_path / "run"), 0.0)
    assert (status.units_done, status.units, status.tally["rows"]) == (1, 2, 4)
    grown = label(tmp_path, GROWN)
    assert (grown.units, grown.units_done_now, grown.totals.chains) == (4, 3, len(GROWN))
    status = run_status(LocalStorage(tmp_path / "run"), 0.0)
    assert (status.units_done, status.units, status.tally) == (4, 4, grown.tally)
    assert_sound(tmp_path)


@pytest.mark.parametrize("grown_again", [False, True])
def test_damaged_files_of_a_grown_input_are_staged_again(tmp_path: Path, grown_again: bool) -> None:
    label(tmp_path, OLD)
    rows = [*OLD, *chains(1, last=3), *chains(5, 6, 7)]
    label(tmp_path, rows)
    before = labels(tmp_path)
    for path in (tmp_path / "run" / "inputs").iterdir():
        path.write_bytes(b"damaged")
    assert audited(tmp_path).findings
    again = label(tmp_path, [*rows, *(chains(8) if grown_again else [])])
    assert again.units_done_now == int(grown_again)
    assert labels(tmp_path).filter(pl.col("source_id") != "8-1").equals(before)
    assert_sound(tmp_path)


def test_a_lost_record_of_a_growth_is_made_again(tmp_path: Path) -> None:
    label(tmp_path, OLD)
    grown = label(tmp_path, GROWN)
    (last,) = (tmp_path / "run" / "commits").glob("input-*-00001.json")
    last.write_bytes(b"damaged")
    (tmp_path / "run" / "run.json").unlink()
    again = label(tmp_path, GROWN)
    assert (again.units_done_now, again.totals) == (0, grown.totals)
    assert_sound(tmp_path)


def test_an_input_in_another_order_does_not_mend_a_damaged_one(tmp_path: Path) -> None:
    label(tmp_path, OLD)
    for path in (tmp_path / "run" / "inputs").iterdir():
        path.write_bytes(b"damaged")
    with pytest.raises(Exception, match="does not begin with the same rows"):
        label(tmp_path, [*chains(8), *OLD[::-1]])
    assert label(tmp_path, [*OLD, *chains(8)]).units_done_now == 1
    assert_sound(tmp_path)


def test_a_lost_first_record_needs_the_first_input(tmp_path: Path) -> None:
    label(tmp_path, OLD)
    (record,) = (tmp_path / "run" / "commits").glob("input-*.json")
    record.unlink()
    with pytest.raises(InputError, match="start once with the input as it was"):
        label(tmp_path, [*OLD, *chains(8)])
    label(tmp_path, OLD)
    assert label(tmp_path, [*OLD, *chains(8)]).units_done_now == 1
    assert_sound(tmp_path)


def test_files_are_compared_by_their_rows(tmp_path: Path) -> None:
    folder = tmp_path / "input"
    folder.mkdir()
    write_rows(folder / "b.jsonl", OLD)
    first = label(tmp_path, [], f"data.path={folder}/*.jsonl")
    write_rows(folder / "a.jsonl", chains(5))
    write_rows(folder / "c.jsonl", chains(6))
    grown = label(tmp_path, [], f"data.path={folder}/*.jsonl")
    assert (grown.totals.rows, grown.units_done_now) == (first.totals.rows + 2, 1)
    (folder / "b.jsonl").rename(folder / "d.jsonl")
    assert label(tmp_path, [], f"data.path={folder}/*.jsonl").units_done_now == 0
    assert_sound(tmp_path)
