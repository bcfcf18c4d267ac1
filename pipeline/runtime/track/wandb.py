"""Weights & Biases, as its own environment says: WANDB_PROJECT or `stepvalue`, WANDB_MODE, WANDB_DIR, WANDB_API_KEY."""

import os
from collections.abc import Mapping
from pathlib import Path

import wandb

from pipeline.core.errors import UsageError

PROJECT = "stepvalue"
_NOT_ONLINE = ("offline", "disabled", "dryrun")


class WeightsAndBiases:
    """See `tracked.Sink`. Raises UsageError where it would have to ask for a key."""

    def __init__(self) -> None:
        online = os.environ.get("WANDB_MODE", "online") not in _NOT_ONLINE
        if online and not wandb.login(prompt=False, verify=False):
            raise UsageError(
                "run.track=wandb has no key: run `wandb login`, set WANDB_API_KEY, or set WANDB_MODE=offline"
            )

    def start(self, name: str, settings: Mapping[str, object], folder: Path) -> None:
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or PROJECT,
            name=name,
            config=dict(settings),
            settings=wandb.Settings(console="off", silent=True),
        )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def end(self) -> None:
        self._run.finish()
