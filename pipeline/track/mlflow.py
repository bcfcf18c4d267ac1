"""MLflow, at MLFLOW_TRACKING_URI; each start is one of its runs, in the experiment MLFLOW_EXPERIMENT_NAME or `stepvalue`."""

import os
from collections.abc import Mapping
from pathlib import Path

import mlflow

EXPERIMENT = "stepvalue"
VALUE_CHARS = 500
"""Of a setting: what all versions of the server take."""


class Mlflow:
    """See `base.Sink`."""

    def start(self, name: str, settings: Mapping[str, object], folder: Path) -> None:
        if not os.environ.get("MLFLOW_EXPERIMENT_NAME"):
            mlflow.set_experiment(EXPERIMENT)
        mlflow.start_run(run_name=name)
        mlflow.log_params({key: str(value)[:VALUE_CHARS] for key, value in settings.items()})

    def log(self, step: int, values: Mapping[str, float]) -> None:
        mlflow.log_metrics(dict(values), step=step)

    def end(self) -> None:
        mlflow.end_run()
