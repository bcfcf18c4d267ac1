"""The three trackers: TensorBoard, MLflow, Weights & Biases. Each imports its package when it is created."""

import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path

from pipeline.core.errors import UsageError
from pipeline.runtime.track.tracking import TRACK

EXPERIMENT = "stepvalue"
VALUE_CHARS = 500
"""Longest value of a setting that all versions of the MLflow server accept."""
REASON_CHARS = 300
"""Longest reason that is quoted from an error of MLflow. Its first sentence is the reason; advice follows."""
_SENTENCE_END = re.compile(r"[.!?] ")


class Mlflow:
    """Logs to MLFLOW_TRACKING_URI. Each start is an MLflow run.

    The experiment is MLFLOW_EXPERIMENT_NAME, by default `stepvalue`.

    See `tracking.Sink`. Raises UsageError if this installation of MLflow cannot write to that URI.
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
            self._mlflow.set_experiment(EXPERIMENT)
        self._mlflow.start_run(run_name=name)
        self._mlflow.log_params({key: str(value)[:VALUE_CHARS] for key, value in settings.items()})

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._mlflow.log_metrics(dict(values), step=step)

    def end(self) -> None:
        self._mlflow.end_run()


class TensorBoard:
    """Writes event files. Those of all starts are in one folder, so that the curves continue. See `tracking.Sink`."""

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


PROJECT = "stepvalue"
_NOT_ONLINE = ("offline", "disabled", "dryrun")


class WeightsAndBiases:
    """Logs as the environment says: WANDB_PROJECT (by default `stepvalue`), WANDB_MODE, WANDB_DIR, WANDB_API_KEY.

    See `tracking.Sink`. Raises UsageError if it would have to ask for a key.
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
