"""`train` leaves out the chains that `export` leaves out with the same settings, and says how many and by which setting."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from transformers import AutoTokenizer

from pipeline.core.errors import InputError, UsageError
from pipeline.export.run import export
from pipeline.export.settings import ExportConfig, TargetKind
from pipeline.train.data import StepDataset
from pipeline.train.result import NAME, Record, read_record, settings_of, write_record
from pipeline.train.settings import Loss, TrainConfig
from pipeline.train.trainer import train
from tests.export.known_runs import PROBLEMS
from tests.library import Library
from tests.runtime.adaptive import long_chain, settings
from tests.runtime.in_process import label_in_process
from tests.tiny.policy import ASSET

pytestmark = pytest.mark.slow

BOUNDS: list[dict[str, float]] = [
    {"min_p_outcome": 0.1},
    {"min_root_value": 0.5},
    {"max_root_value": 0.5},
    {"min_p_outcome": 0.1, "max_root_value": 0.5},
]


@pytest.fixture(scope="module")
def run_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("known", tmp_path_factory.mktemp("known"))


def config(run_dir: Path, out: Path, **changed: Any) -> TrainConfig:
    small = {"separator": "\n", "epochs": 1, "layers": 0, "validation": 0.3}
    return TrainConfig(**{"run_dir": str(run_dir), "model": str(ASSET), "out": str(out), **small, **changed})


def lines_of(asked: TrainConfig) -> list[str]:
    shown: list[str] = []
    train(asked, weights=asked.model, progress=shown.append)
    return shown


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_training_and_exports_use_the_same_chains(bounds: dict[str, Any], run_dir: Path, tmp_path: Path) -> None:
    export(
        ExportConfig(
            run_dir=str(run_dir), format="parquet", out=str(tmp_path / "out"), target=TargetKind.soft, **bounds
        )
    )
    written = pl.read_parquet(tmp_path / "out" / "train.parquet")["chain_id"].to_list()
    dataset = StepDataset.of_run(
        config(run_dir, tmp_path, **bounds), AutoTokenizer.from_pretrained(ASSET), max_length=2048
    )
    assert sorted(item.chain_id for item in dataset.items) == sorted(written)
    assert 0 < dataset.chains == 2 * PROBLEMS - sum(dataset.left_out.values()) < 2 * PROBLEMS


def test_the_number_left_out_is_reported_and_the_settings_are_recorded(run_dir: Path, tmp_path: Path) -> None:
    shown = lines_of(config(run_dir, tmp_path / "prm", min_p_outcome=0.1))
    left_out = [int(line.partition("chains left out: ")[2].split(" ")[0]) for line in shown[:2]]
    assert [line.split(" ")[0] for line in shown[:2]] == ["training", "validation"]
    assert all(line.endswith(" by min_p_outcome=0.1") for line in shown[:2])
    assert sum(left_out) == PROBLEMS
    recorded = json.loads((tmp_path / "prm" / NAME).read_text())["settings"]
    assert (recorded["loss"], recorded["min_p_outcome"], recorded["max_root_value"]) == ("soft", 0.1, None)


def test_bounds_that_leave_nothing_are_named(run_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"all \d+ chains to train on are left out: \d+ by min_root_value=1; change"):
        lines_of(config(run_dir, tmp_path / "prm", min_root_value=1.0))
    rows = [{"id": "a", "problem": "What is 2?", "answer": "2", "steps": ["Let me see.", "Well."]}]
    label_in_process(settings(tmp_path, rows, "estimator=fixed"))
    with pytest.raises(
        InputError, match=r"run: min_p_outcome=0\.5 has no effect, because no chain of the run has a p_"
    ):
        lines_of(config(tmp_path / "run", tmp_path / "prm", min_p_outcome=0.5))
    assert not (tmp_path / "prm").exists()


@pytest.mark.parametrize(
    "loss", [Loss.soft, *(pytest.param(loss, marks=pytest.mark.nightly) for loss in Loss if loss is not Loss.soft)]
)
def test_training_on_ends_alone_is_warned_of(loss: Loss, library: Library, tmp_path: Path) -> None:
    shown = lines_of(config(library.copy("ungraded", tmp_path), tmp_path / "prm", loss=loss, validation=0))
    (warning,) = [line for line in shown if line.startswith("warning")]
    assert "few inner steps have a" in warning
    assert ": 0 of 12." in warning


def test_a_chain_of_500_steps_is_trained_on_up_to_the_length_of_the_model(tmp_path: Path) -> None:
    few = ("sampling.rollouts=1", "data.max_steps=500", "estimator.budget=40", "estimator.budget_unit=rollouts")
    label_in_process(settings(tmp_path, [long_chain(500)], *few))
    shown = lines_of(config(tmp_path / "run", tmp_path / "prm", validation=0))
    assert shown[0].startswith("training    1 of 1 chains have steps for loss=soft")
    assert "steps do not fit into 192 tokens and are left out" in shown[0]
    assert (tmp_path / "prm" / "model.safetensors").exists()


def test_a_folder_of_an_earlier_version_lacks_the_settings_that_came_later(tmp_path: Path) -> None:
    asked = config(tmp_path / "run", tmp_path / "out")
    settings = settings_of(asked)
    del settings["threshold"], settings["patience"]
    (tmp_path / "out").mkdir()
    write_record(tmp_path / "out", Record(settings=settings, labels="1f"))
    assert read_record(tmp_path / "out", asked) == Record(settings=settings, labels="1f")
    with pytest.raises(UsageError, match="was trained with patience=None, not 2"):
        read_record(tmp_path / "out", config(tmp_path / "run", tmp_path / "out", patience=2))
