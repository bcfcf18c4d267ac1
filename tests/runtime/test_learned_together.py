"""When the last unit is done, labels are made once more from what all units teach, whoever sampled them and in which order."""

import asyncio
from pathlib import Path
from random import Random
from unittest.mock import patch

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.core.errors import StoreError
from pipeline.core.progress import Summary
from pipeline.runtime.worker import Receipt, UnitTask, Worker
from pipeline.storage.editions import current_states
from pipeline.storage.local import LocalStorage
from pipeline.storage.stored_run import StoredRun, stored_run
from tests.audit.runs import files
from tests.runtime.adaptive import kernels, labels, log, proved, settings, sums
from tests.runtime.in_process import label_in_process

pytestmark = pytest.mark.slow

ROWS = sums(6)
ASKED = ("estimator=pooled", "run.unit_problems=1", "sampling.rollouts=3")
MORE = ("sampling.rollouts=6", "estimator.target_sd=0.05")


def label_at_once(folder: Path, *overrides: str, seed: int = 0) -> Summary:
    """Label, with a driver that hears of no unit that is done before all have begun, and of them in an order by luck."""
    luck, finish, begun = Random(seed), Worker.finish_unit, set[str]()

    async def late(worker: Worker, task: UnitTask) -> Receipt:
        begun.add(task.unit.unit_id)
        receipt = await finish(worker, task)
        while len(begun) < len(ROWS) // 2:
            await asyncio.sleep(0)
        await asyncio.sleep(luck.random() / 20)
        return receipt

    with patch.object(Worker, "finish_unit", late):
        return label_in_process(settings(folder, ROWS, *ASKED, *overrides))


def labelled(folder: Path, *overrides: str, seed: int = 0) -> StoredRun:
    label_at_once(folder, *overrides, seed=seed)
    proved(folder)
    return stored_run(LocalStorage(folder / "run"))


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calm")
    labelled(folder)
    return folder


def test_labels_are_those_of_one_kernel_from_all_chains_and_a_second_start_leaves_them(calm: Path) -> None:
    # Each of the six units has begun at once, with nothing but the prior.
    assert kernels(calm) == [2] * 6 + [12]
    run = stored_run(LocalStorage(calm / "run"))
    ((shard,),) = set(current_states(run.wholes, run.edition).values())
    assert pl.read_parquet(calm / "run" / shard.file)["chains"].to_list() == [12]
    before = files(calm / "run")
    assert label_at_once(calm).labels == ""
    assert files(calm / "run") == before


@pytest.mark.parametrize("seed", range(3))
def test_neither_the_number_of_workers_nor_who_is_done_first_matters(calm: Path, tmp_path: Path, seed: int) -> None:
    labelled(tmp_path, "cluster.workers=4", seed=seed)
    assert log(tmp_path) == log(calm)
    assert labels(tmp_path).equals(labels(calm))
    assert kernels(tmp_path) == kernels(calm)


@pytest.mark.parametrize(
    "step",
    ["storage.edition_writer.write_shard", "storage.edition_writer.publish_or_refuse", "runtime.chain_run.run.arrange"],
)
def test_a_start_that_breaks_off_leaves_a_sound_run_and_the_next_one_ends_it(
    calm: Path, tmp_path: Path, step: str
) -> None:
    broken = patch(f"pipeline.{step}", side_effect=StoreError("power cut"))
    with broken, pytest.raises(StoreError, match="power cut"):
        label_at_once(tmp_path)
    assert not labels(tmp_path).equals(labels(calm))
    if step != "runtime.chain_run.run.arrange":
        # What relabel makes of it has learned as much, so the labels of both commands have the same values.
        proved(tmp_path)
        assert main(["relabel", f"run_dir={tmp_path / 'run'}", "estimator.threshold=0.3"]) == 0
        assert labels(tmp_path)["value"].equals(labels(calm)["value"])
        assert main(["relabel", f"run_dir={tmp_path / 'run'}", "estimator.threshold=0.1"]) == 0
    labelled(tmp_path)
    assert labels(tmp_path).equals(labels(calm))
    assert kernels(tmp_path) == kernels(calm)


def test_a_later_start_goes_on_with_what_all_units_taught_and_learns_again(tmp_path: Path) -> None:
    first, found = labelled(tmp_path), labelled(tmp_path, *MORE)
    learned = set(current_states(first.wholes, first.edition).values())
    assert {whole.base for whole in found.wholes.values()} == learned
    # The chains of a unit that was whole before are in what it begins with, and do not count twice.
    assert {whole.learned_from for whole in found.wholes.values()} == {12}
    assert found.edition is not None
    assert (found.edition.number, found.edition.learned_from) == (1, 12)
    assert set(current_states(found.wholes, found.edition).values()) != learned


def test_one_unit_and_an_estimator_that_does_not_learn_need_no_edition(tmp_path: Path) -> None:
    assert labelled(tmp_path / "fixed", "estimator=fixed").edition is None
    one = settings(tmp_path, ROWS, *ASKED, "run.unit_problems=6")
    assert label_in_process(one).units == 1
    assert stored_run(LocalStorage(tmp_path / "run")).edition is None
    # What the unit begins with now, its own chains have taught. Its labels are learned from the beginning.
    label_in_process(settings(tmp_path, ROWS, *ASKED, "run.unit_problems=6", *MORE))
    again = stored_run(LocalStorage(tmp_path / "run")).edition
    assert again is not None
    assert again.learned_from == 12
    proved(tmp_path)
