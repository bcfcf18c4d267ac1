"""Where the course of a run is drawn: TensorBoard, MLflow, Weights & Biases. A package is loaded when its tracker is made."""

import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path

from pipeline.core.errors import UsageError

EXPERIMENT = "stepvalue"
VALUE_CHARS = 500
"""Of a setting: what all versions of the server take."""
REASON_CHARS = 300
"""Of what MLflow says first, before it advises."""
_SENTENCE_END = re.compile(r"[.!?] ")


class Mlflow:
    """At MLFLOW_TRACKING_URI; each start is one of its runs, in the experiment MLFLOW_EXPERIMENT_NAME or `stepvalue`.

    See `tracking.Sink`. Raises UsageError for a place that this installation of MLflow cannot write to.
    """

    def __init__(self) -> None:
        import mlflow

        self._mlflow = mlflow
        try:
            mlflow.MlflowClient()
        except Exception as error:  # each kind of store has errors of its own
            first, *_ = _SENTENCE_END.split(" ".join(str(error).split()), maxsplit=1)
            reason = first[:REASON_CHARS]
            raise UsageError(
                f"run.track=mlflow cannot write to {mlflow.get_tracking_uri()}: {reason}; set MLFLOW_TRACKING_URI to a "
                "server's http:// address, or install `mlflow` for a data base"
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
    """Event files, those of all starts in one folder, so that its curves go on. See `tracking.Sink`."""

    def __init__(self) -> None:
        from tensorboardX import SummaryWriter

        self._writer_at = SummaryWriter

    def start(self, name: str, settings: Mapping[str, object], folder: Path) -> None:
        self._writer = self._writer_at(logdir=str(folder))
        # Four blanks: as it is, in what TensorBoard shows of a text.
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
    """As its own environment says: WANDB_PROJECT or `stepvalue`, WANDB_MODE, WANDB_DIR, WANDB_API_KEY.

    See `tracking.Sink`. Raises UsageError where it would have to ask for a key.
    """

    def __init__(self) -> None:
        import wandb

        self._wandb = wandb
        online = os.environ.get("WANDB_MODE", "online") not in _NOT_ONLINE
        if online and not wandb.login(prompt=False, verify=False):
            raise UsageError(
                "run.track=wandb has no key: run `wandb login`, set WANDB_API_KEY, or set WANDB_MODE=offline"
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
