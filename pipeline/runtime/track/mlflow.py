"""MLflow, at MLFLOW_TRACKING_URI; each start is one of its runs, in the experiment MLFLOW_EXPERIMENT_NAME or `stepvalue`."""

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path

import mlflow

from pipeline.core.errors import UsageError

EXPERIMENT = "stepvalue"
VALUE_CHARS = 500
"""Of a setting: what all versions of the server take."""
REASON_CHARS = 300
"""Of what MLflow says first, before it advises."""
_SENTENCE_END = re.compile(r"[.!?] ")


class Mlflow:
    """See `tracked.Sink`. Raises UsageError for a place that this installation of MLflow cannot write to."""

    def __init__(self) -> None:
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
            mlflow.set_experiment(EXPERIMENT)
        mlflow.start_run(run_name=name)
        mlflow.log_params({key: str(value)[:VALUE_CHARS] for key, value in settings.items()})

    def log(self, step: int, values: Mapping[str, float]) -> None:
        mlflow.log_metrics(dict(values), step=step)

    def end(self) -> None:
        mlflow.end_run()
