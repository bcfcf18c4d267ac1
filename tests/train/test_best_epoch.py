"""The best epoch by held-out loss is kept, found again, and put back."""

from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest
import torch

from pipeline.train.best_epoch import BestEpoch
from pipeline.train.result import Metrics

METRICS = Metrics(steps=4, good=2, bad=2, loss=0.5, auc=0.5, accuracy=0.5, brier=0.25)


def model_of(value: float) -> torch.nn.Linear:
    model = torch.nn.Linear(2, 1)
    torch.nn.init.constant_(model.weight, value)
    return model


def test_the_smallest_loss_wins_and_the_first_of_equal_ones(tmp_path: Path) -> None:
    best = BestEpoch(tmp_path / "checkpoints")
    for epoch, loss in enumerate([nan, 0.5, inf, 0.3, 0.4, 0.3, None], start=1):
        best.compare(epoch, replace(METRICS, loss=loss), model_of(epoch), write=True)
    model = model_of(9)
    best.restore(model)
    assert best.epoch == 4
    assert best.metrics == replace(METRICS, loss=0.3)
    assert model.weight.tolist() == [[4, 4]]


def test_a_later_start_goes_on_from_the_best_so_far(tmp_path: Path) -> None:
    BestEpoch(tmp_path).compare(3, METRICS, model_of(3), write=True)
    again = BestEpoch(tmp_path)
    assert (again.epoch, again.metrics) == (3, METRICS)
    again.compare(3, METRICS, model_of(7), write=True)
    again.compare(4, replace(METRICS, loss=0.6), model_of(4), write=True)
    model = model_of(9)
    again.restore(model)
    assert model.weight.tolist() == [[3, 3]]
    assert len(list(tmp_path.glob("*.safetensors"))) == 1


def test_without_held_out_steps_there_is_no_best(tmp_path: Path) -> None:
    best = BestEpoch(tmp_path)
    best.compare(1, replace(METRICS, loss=None), model_of(1), write=True)
    assert best.metrics is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("write", [True, False])
def test_other_processes_compare_and_do_not_write(tmp_path: Path, write: bool) -> None:
    best = BestEpoch(tmp_path)
    best.compare(1, METRICS, model_of(1), write=write)
    assert best.epoch == 1
    assert bool(list(tmp_path.iterdir())) == write


def test_a_crash_while_the_state_is_written_leaves_the_best_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state names weights that are there, whenever the process ends."""

    class PowerCut(Exception): ...

    def cut(*_: object) -> None:
        raise PowerCut

    BestEpoch(tmp_path).compare(1, METRICS, model_of(1), write=True)
    for part in ("atomic_file", "save_model"):
        with monkeypatch.context() as patched:
            patched.setattr(f"pipeline.train.best_epoch.{part}", cut)
            with pytest.raises(PowerCut):
                BestEpoch(tmp_path).compare(2, replace(METRICS, loss=0.1), model_of(2), write=True)
        again, model = BestEpoch(tmp_path), model_of(9)
        again.restore(model)
        assert again.epoch == 1
        assert model.weight.tolist() == [[1, 1]]
    BestEpoch(tmp_path).compare(2, replace(METRICS, loss=0.1), model_of(2), write=True)
    assert [file.name for file in tmp_path.glob("*.safetensors")] == ["best-2.safetensors"]
