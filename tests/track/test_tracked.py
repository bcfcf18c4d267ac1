"""What is tracked can be read back with the trackers' packages; a failing one is reported once, and the run goes on."""

import json
import re
import struct
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest.mock import Mock, call, patch

import pytest

from pipeline.__main__ import main
from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.config.choices import Tracker
from pipeline.core.errors import UsageError
from pipeline.core.progress import Load, Pace, Status, Verdicts
from pipeline.runtime.tracking import folder_of, tracker_for, tracking, values_of
from tests.audit.runs import config
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process
from tests.runtime.test_worker import tables

pytestmark = pytest.mark.slow

STATUSES = [
    Status(stage="starting", units=2, rollouts_before=4),
    Status(stage="labelling", units=2, units_done=1, rollouts=10, rollouts_before=4, tokens=90,
           verdicts=Verdicts(correct=6, incorrect=4), load=Load(running=3), workers=1, device_seconds=36.0),
    Status(stage="labelling", units=2, units_done=2, rollouts=20, rollouts_before=4, tokens=190,
           verdicts=Verdicts(correct=11, incorrect=9), workers=1, device_seconds=72.0),
]  # fmt: skip


class Notes:
    """A sink that remembers, or fails on the call named by `fails`."""

    def __init__(self, fails: str = "") -> None:
        self.shown: list[tuple[object, ...]] = []
        self._fails = fails

    def start(self, name: str, settings: Mapping[str, object], folder: Path) -> None:
        self._note("start", name, settings["sampling.rollouts"], folder)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._note("log", step, dict(values))

    def end(self) -> None:
        self._note("end")

    def _note(self, what: str, *shown: object) -> None:
        if what == self._fails:
            raise ConnectionError("the server\nis away")
        self.shown.append((what, *shown))


def track(sink: Notes, tmp_path: Path, statuses: list[Status]) -> list[Status]:
    heard: list[Status] = []
    with tracking(sink, config(tmp_path, "plan.gpu_hour_price=2"), "/runs/math", heard.append) as report:
        for status in statuses:
            report(status)
    return heard


def test_a_sink_is_reported_the_newest_status_in_growing_steps(tmp_path: Path) -> None:
    sink = Notes()
    assert track(sink, tmp_path, STATUSES) == STATUSES
    assert sink.shown[0] == ("start", "math", 3, Path("/runs/math/tracked"))
    assert sink.shown[-1] == ("end",)
    steps = [shown[1] for shown in sink.shown[1:-1] if isinstance(shown[1], int)]
    assert steps == sorted(set(steps))
    last = sink.shown[-2]
    assert last[1] == 24
    assert isinstance(last[2], dict)
    assert last[2]["money"] == pytest.approx(0.04)


def test_no_text_of_the_data_is_tracked(tmp_path: Path) -> None:
    """Neither of a row, nor of what is sampled, which states the known answer."""
    rows: list[dict[str, object]] = [
        {
            "id": f"zebra {number}",
            "problem": f"zebra {number}?",
            "answer": "zebra",
            "steps": ["A zebra.", f"The answer is {answer}."],
        }
        for number, answer in enumerate(["zebra", "two zebras", "", "zebra"])
    ]
    write_rows(tmp_path / "rows.jsonl", [*rows, {"id": "zebra", "problem": "A zebra, alone?", "answer": "zebra"}])
    sink = Mock()
    with patch("pipeline.runtime.driver.tracker_for", lambda _: sink):
        label_in_process(config(tmp_path, "run.track=tensorboard"))
    assert any("zebra" in text for text in tables(tmp_path / "run", "rollouts")["text"])
    assert len(sink.mock_calls) >= 3
    assert sink.mock_calls[-1] == call.end()
    assert "policy.oracle.seed" in repr(sink.mock_calls)
    assert "zebra" not in repr(sink.mock_calls)


def test_a_start_without_work_is_not_tracked(tmp_path: Path) -> None:
    sink = Notes()
    track(sink, tmp_path, [Status(stage="reading the input"), Status(stage="starting", units=2, units_done=2)])
    assert sink.shown == []


@pytest.mark.parametrize("fails", ["start", "log", "end"])
def test_a_sink_that_fails_is_reported_of_in_one_line(
    tmp_path: Path, fails: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert track(Notes(fails), tmp_path, STATUSES) == STATUSES
    assert (
        capsys.readouterr().err
        == "stepvalue: run.track=none failed and is off, the run continues: the server is away\n"
    )


def test_values_leave_out_what_is_not_known() -> None:
    values = values_of(STATUSES[1], Pace(recent=7.5), None)
    assert values == {
        "units_done": 1, "prefixes_decided": 0, "rollouts": 14, "tokens": 90, "tokens_per_second": 7.5,
        "requests_running": 3, "requests_waiting": 0, "grader_queue": 0, "workers": 1, "device_hours": 0.01,
        "share_correct": 0.6, "share_incorrect": 0.4, "share_no_answer": 0, "share_ungraded": 0, "share_aborted": 0,
        "share_truncated": 0,
    }  # fmt: skip
    assert not any(name.startswith("share") for name in values_of(STATUSES[0], Pace(), None))


def test_files_go_into_a_local_run_directory_else_beside_the_command() -> None:
    assert folder_of("/runs/math") == Path("/runs/math/tracked")
    assert folder_of("s3://bucket/runs/math") == Path("tracked/math")


def test_tensorboard_reads_what_a_run_has_reported(tmp_path: Path) -> None:
    from tensorboardX.proto.event_pb2 import Event

    summary = label_in_process(config(tmp_path, "run.track=tensorboard"))
    (file,) = (tmp_path / "run" / "tracked").iterdir()
    events = [Event.FromString(record) for record in _records(file.read_bytes())]
    values = {value.tag: (event.step, value.simple_value) for event in events for value in event.summary.value}
    assert values["rollouts"] == (summary.now.rollouts, summary.now.rollouts)
    assert values["units_done"] == (summary.now.rollouts, summary.units)
    assert "settings/text_summary" in values
    assert audit(AuditConfig(run_dir=str(tmp_path / "run"))).sound


def _records(data: bytes) -> Iterator[bytes]:
    """Those of a TFRecord file: length, checksum, content, checksum."""
    while data:
        (length,) = struct.unpack_from("<Q", data)
        yield data[12 : 12 + length]
        data = data[16 + length :]


def test_mlflow_has_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlflow").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    import mlflow

    summary = label_in_process(config(tmp_path, "run.track=mlflow"))
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("stepvalue")
    assert experiment
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.data.metrics["rollouts"] == summary.now.rollouts
    assert run.data.params["sampling.rollouts"] == "3"
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "run"


def test_a_place_that_mlflow_cannot_write_to_is_reported_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nonsense://there")
    with pytest.raises(UsageError) as refused:
        label_in_process(config(tmp_path, "run.track=mlflow"))
    assert re.fullmatch(
        r"run\.track=mlflow cannot write to nonsense://there: [^.]+ 'nonsense://there' [^.]+; set MLFLOW_TRACKING_URI to [^.]+",
        str(refused.value),
    )
    assert not (tmp_path / "run").exists()


def logged(data: bytes) -> Iterator[bytes]:
    """The records of a log in LevelDB's format behind a header of 7 bytes: blocks of 32 KiB; pieces of a record, each with its
    checksum, length and kind (1 whole, 2 first, 3 middle, 4 last)."""
    record, at = b"", 7
    while at + 7 <= len(data):
        if at % 32768 > 32768 - 7:
            at += 32768 - at % 32768
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield record
            record = b""


def test_wandb_has_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    import wandb
    from wandb.proto.wandb_internal_pb2 import Record

    summary = label_in_process(config(tmp_path, "run.track=wandb"))
    wandb.teardown()
    files = sorted(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    records = [Record.FromString(record) for file in files for record in logged(file.read_bytes())]
    assert "run" in {record.run.display_name for record in records if record.HasField("run")}
    history = [record.history for record in records if record.HasField("history")]
    last = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in history[-1].item}
    assert last["rollouts"] == last["_step"] == summary.now.rollouts


def test_wandb_without_a_key_is_refused_before_it_would_ask_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="wandb login"):
        tracker_for(Tracker.wandb)


@pytest.mark.parametrize("kind", [kind for kind in Tracker if kind is not Tracker.none])
def test_a_package_that_is_not_there_is_named_before_anything_starts(
    kind: Tracker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = {Tracker.tensorboard: "tensorboardX", Tracker.mlflow: "mlflow", Tracker.wandb: "wandb"}[kind]
    with patch.dict(sys.modules, {module: None}):
        code = main(["label", "policy=oracle", "data=sample", f"run_dir={tmp_path / 'run'}", f"run.track={kind.value}"])
    assert code == UsageError.exit_code
    assert "pip install 'stepvalue[track]'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
