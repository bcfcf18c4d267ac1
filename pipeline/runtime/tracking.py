"""Sends the statuses of a run to TensorBoard, MLflow or Weights & Biases, whose package is imported only if it is used.

That happens in a separate thread, so that a slow tracker does not delay the run. Only the newest status is kept for sending. A
tracker that fails is reported once and receives nothing more; the run continues. Counts cover all starts;
shares, speeds and costs cover this start.
"""

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from pipeline.config.choices import Tracker
from pipeline.config.label import LabelConfig
from pipeline.config.recorded_settings import flatten_settings
from pipeline.core.errors import Name, UsageError
from pipeline.core.output import say
from pipeline.core.progress import Pace, ProgressHistory, Status, pace
from pipeline.storage.location import last_part
from pipeline.storage.objects import SCHEME_END
from pipeline.storage.starts import TRACKED

TRACK = Name("run.track")
END_SECONDS = 30.0
"""How long a run waits at its end until the last status is sent."""
PROJECT = "stepvalue"
"""Name of the experiment of MLflow, and of the project of Weights & Biases, where the environment gives none."""
VALUE_CHARS = 500
"""Longest value of a setting that all versions of the MLflow server accept."""
REASON_CHARS = 300
"""Longest reason that is quoted from an error of MLflow. Its first sentence is the reason; advice follows."""
_SENTENCE_END = re.compile(r"[.!?] ")
_NOT_ONLINE = ("offline", "disabled", "dryrun")


class Sink(Protocol):
    """The interface of a tracker. All calls come from one thread, which is not the main thread.

    It may raise any error; the run then continues without it.
    """

    def start(self, name: str, settings: Mapping[str, object], folder: Path) -> None:
        """Begin a start of the run `name`. `settings`: dotted keys with plain values. `folder`: a folder for files."""
        ...

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log the values at a step. Steps increase."""
        ...

    def end(self) -> None:
        """Finish; no further call follows."""
        ...


class Mlflow:
    """Logs to MLFLOW_TRACKING_URI. Each start is an MLflow run.

    The experiment is MLFLOW_EXPERIMENT_NAME, by default `stepvalue`.

    See `Sink`. Raises UsageError if this installation of MLflow cannot write to that URI.
    """

    def __init__(self) -> None:
        import mlflow

        self._mlflow = mlflow
        try:
            mlflow.MlflowClient()
        except Exception as error:  # each kind of store raises its own errors
            first, *_ = _SENTENCE_END.split(" ".join(str(error).split()), maxsplit=1)
            reason = first[:REASON_CHARS]
            raise UsageError(
                TRACK,
                f"=mlflow cannot write to {mlflow.get_tracking_uri()}: {reason}; set MLFLOW_TRACKING_URI to a server's "
                "http:// address, or install `mlflow` for a data base",
            ) from error

    def start(self, name: str, settings: Mapping[str, object], folder: Path) -> None:
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        if not os.environ.get("MLFLOW_EXPERIMENT_NAME"):
            self._mlflow.set_experiment(PROJECT)
        self._mlflow.start_run(run_name=name)
        self._mlflow.log_params({key: str(value)[:VALUE_CHARS] for key, value in settings.items()})

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._mlflow.log_metrics(dict(values), step=step)

    def end(self) -> None:
        self._mlflow.end_run()


class TensorBoard:
    """Writes event files. Those of all starts are in one folder, so that the curves continue. See `Sink`."""

    def __init__(self) -> None:
        from tensorboardX import SummaryWriter

        self._writer_at = SummaryWriter

    def start(self, name: str, settings: Mapping[str, object], folder: Path) -> None:
        self._writer = self._writer_at(logdir=str(folder))
        # TensorBoard shows texts as Markdown, in which four blanks mark preformatted text.
        text = json.dumps(settings, indent=1, ensure_ascii=False)
        self._writer.add_text("settings", "\n".join(f"    {line}" for line in text.splitlines()))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def end(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """Logs as the environment says: WANDB_PROJECT (by default `stepvalue`), WANDB_MODE, WANDB_DIR, WANDB_API_KEY.

    See `Sink`. Raises UsageError if it would have to ask for a key.
    """

    def __init__(self) -> None:
        import wandb

        self._wandb = wandb
        online = os.environ.get("WANDB_MODE", "online") not in _NOT_ONLINE
        if online and not wandb.login(prompt=False, verify=False):
            raise UsageError(
                TRACK, "=wandb has no key: run `wandb login`, set WANDB_API_KEY, or set WANDB_MODE=offline"
            )

    def start(self, name: str, settings: Mapping[str, object], folder: Path) -> None:
        self._run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT") or PROJECT,
            name=name,
            config=dict(settings),
            settings=self._wandb.Settings(console="off", silent=True),
        )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def end(self) -> None:
        self._run.finish()


_SINKS: Mapping[Tracker, Callable[[], Sink]] = {
    Tracker.tensorboard: TensorBoard,
    Tracker.mlflow: Mlflow,
    Tracker.wandb: WeightsAndBiases,
}


def tracker_for(kind: Tracker) -> Sink | None:
    """The tracker of the settings; None for `none`. Raises UsageError if its package is missing or it cannot be used."""
    if kind is Tracker.none:
        return None
    try:
        return _SINKS[kind]()
    except ImportError as error:
        raise UsageError(
            TRACK,
            f"={kind.value} needs a package that is not installed ({error}): pip install 'stepvalue[track]', or '.[track]' in "
            "a checkout",
        ) from error


@contextmanager
def tracking(
    sink: Sink | None, config: LabelConfig, run_dir: str, watch: Callable[[Status], None]
) -> Iterator[Callable[[Status], None]]:
    """Yield a watcher that sends each status to `sink` and passes it on to `watch`. `run_dir`: the run directory.

    A start that finds no work sends nothing.
    """
    if sink is None:
        yield watch
        return
    tracking = _Tracking(sink, config, run_dir)

    def send(status: Status) -> None:
        tracking.take(status)
        watch(status)

    try:
        yield send
    finally:
        tracking.end()


def folder_of(run_dir: str) -> Path:
    """The folder for a tracker's files: in the run directory if it is a folder, else under the working directory."""
    return Path(TRACKED) / last_part(run_dir) if SCHEME_END in run_dir else Path(run_dir) / TRACKED


class _Tracking:
    def __init__(self, sink: Sink, config: LabelConfig, run_dir: str) -> None:
        self._sink = sink
        self._config = config
        self._run_dir = run_dir
        self._course = ProgressHistory()
        self._began = time.monotonic()
        self._news = threading.Event()
        self._over = False
        self._status: Status | None = None
        self._thread = threading.Thread(target=self._send_all, name="tracking", daemon=True)

    def take(self, status: Status) -> None:
        self._course.take(status, time.monotonic() - self._began)
        self._status = status
        if status.units_done < status.units and self._thread.ident is None:
            self._thread.start()
        self._news.set()

    def end(self) -> None:
        self._over = True
        self._news.set()
        if self._thread.ident is not None:
            self._thread.join(END_SECONDS)

    def _send_all(self) -> None:
        try:
            self._sink.start(last_part(self._run_dir), _flat_settings(self._config), folder_of(self._run_dir))
            sent, over = -1, False
            while not over:
                self._news.wait()
                self._news.clear()
                over = self._over
                sent = self._send(sent)
            self._sink.end()
        except Exception as error:  # noqa: BLE001  # no error of a tracker may stop the run
            reason = " ".join(str(error).split()) or type(error).__name__
            say(f"run.track={self._config.run.track.value} failed and is off, the run continues: {reason}")

    def _send(self, sent: int) -> int:
        """Send the newest status if its step is beyond `sent`. Returns the last step that was sent."""
        status = self._status
        if status is None or _step_of(status) <= sent:
            return sent
        now = pace(self._course.samples, status)
        self._sink.log(_step_of(status), values_of(status, now, self._config.plan.gpu_hour_price))
        return _step_of(status)


def _flat_settings(config: LabelConfig) -> dict[str, object]:
    return {
        key: plain for name, value in asdict(config).items() for key, plain in flatten_settings(name, value).items()
    }


def _step_of(status: Status) -> int:
    """The step of a status: the rollouts of all starts, so that a later start continues the axis of the one before."""
    return status.rollouts_before + status.rollouts


def values_of(status: Status, pace: Pace, price: float | None) -> dict[str, float]:
    """The values to plot of a status, by name, without unknown ones. `price`: cost of one device for one hour."""
    hours = status.device_hours
    known = {
        "units_done": status.units_done,
        "prefixes_decided": status.prefixes_decided,
        "rollouts": _step_of(status),
        "tokens": status.tokens_before + status.tokens,
        "tokens_per_second": pace.recent,
        "requests_running": status.load.running,
        "requests_waiting": status.load.waiting,
        "grader_queue": status.load.grading,
        "workers": status.workers,
        "device_hours": hours,
        "money": None if price is None else hours * price,
        "share_of_bound": status.share_of_bound,
    }
    shares = {
        f"share_{name}": count / status.rollouts for name, count in asdict(status.verdicts).items() if status.rollouts
    }
    return {name: float(value) for name, value in (known | shares).items() if value is not None}
