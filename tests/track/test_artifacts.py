"""What MLflow and Weights & Biases have of a run and of its export, read back; a tracker that fails costs no export."""

import json
from pathlib import Path

import pytest

from pipeline.__main__ import main
from pipeline.cli.export import tracked_export
from pipeline.config.choices import Tracker
from pipeline.core.errors import UploadError, UsageError
from pipeline.export.settings import ExportConfig
from pipeline.runtime.track import artifacts
from tests.audit.runs import config
from tests.runtime.in_process import label_in_process
from tests.track.test_tracked import Notes, logged

pytestmark = pytest.mark.slow


def asked(tmp_path: Path, track: Tracker, out: str = "out") -> ExportConfig:
    return ExportConfig(run_dir=str(tmp_path / "run"), format="trl", out=str(tmp_path / out), track=track)


@pytest.fixture
def mlflow_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    uri = (tmp_path / "mlflow").as_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    return uri


@pytest.mark.usefixtures("mlflow_uri")
@pytest.mark.parametrize("tracked", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_mlflow_has_the_run_and_its_export(tmp_path: Path, tracked: bool) -> None:
    import mlflow

    summary = label_in_process(config(tmp_path, "run.track=mlflow" if tracked else "run.track=none"))
    tracked_export(asked(tmp_path, Tracker.mlflow))
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("stepvalue")
    assert experiment
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.data.metrics.get("rollouts") == (summary.rollouts_now if tracked else None)
    assert run.data.params.get("sampling.rollouts") == ("3" if tracked else None)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "run"
    names = [each.path for each in client.list_artifacts(run.info.run_id, "export/out")]
    assert names == ["export/out/README.md", "export/out/train.jsonl"]


def test_wandb_has_the_run_and_its_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    import wandb
    from wandb.proto.wandb_internal_pb2 import Record

    summary = label_in_process(config(tmp_path, "run.track=wandb"))
    tracked_export(asked(tmp_path, Tracker.wandb))
    wandb.teardown()
    files = sorted(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    records = [Record.FromString(record) for file in files for record in logged(file.read_bytes())]
    assert len({record.run.run_id for record in records if record.HasField("run")}) == 1
    assert "run" in {record.run.display_name for record in records if record.HasField("run")}
    history = [record.history for record in records if record.HasField("history")]
    last = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in history[-1].item}
    assert last["rollouts"] == last["_step"] == summary.rollouts_now
    (found,) = [record.artifact for record in records if record.HasField("artifact")] or [
        record.request.log_artifact.artifact for record in records if record.request.HasField("log_artifact")
    ]
    assert (found.type, found.name) == ("dataset", "run-out")
    assert {entry.path for entry in found.manifest.contents} == {"README.md", "train.jsonl"}


def test_a_tracker_that_fails_costs_no_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    label_in_process(config(tmp_path))
    monkeypatch.setattr(artifacts, "tracker_for", lambda _: Notes(fails="artifact"))
    with pytest.raises(
        UploadError, match=r"holds the whole export, but track=mlflow failed: the server is away\. .*overwrite"
    ):
        tracked_export(asked(tmp_path, Tracker.mlflow))
    assert (tmp_path / "out" / "train.jsonl").is_file()


def test_what_cannot_work_is_refused_before_anything_is_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    label_in_process(config(tmp_path))
    with pytest.raises(UsageError, match="TensorBoard keeps no files"):
        tracked_export(asked(tmp_path, Tracker.tensorboard))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nonsense://there")
    words = ["export", f"run_dir={tmp_path / 'run'}", "format=trl", f"out={tmp_path / 'out'}", "track=mlflow"]
    assert main(words) == UsageError.exit_code
    assert "stepvalue: track=mlflow cannot write to nonsense://there" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("mlflow_uri")
@pytest.mark.parametrize("left", ["", "../../elsewhere", "\x00", "a b"])
def test_an_id_that_is_none_makes_a_run_of_its_own(tmp_path: Path, left: str) -> None:
    import mlflow

    label_in_process(config(tmp_path))
    (tmp_path / "run" / "tracked").mkdir()
    (tmp_path / "run" / "tracked" / "mlflow-run").write_text(left)
    tracked_export(asked(tmp_path, Tracker.mlflow))
    experiment = mlflow.MlflowClient().get_experiment_by_name("stepvalue")
    assert experiment
    assert len(mlflow.MlflowClient().search_runs([experiment.experiment_id])) == 1
