"""The weights of the epoch with the smallest loss on held-out problems, kept beside the checkpoints.

A training that is resumed finds them again. It may have been interrupted after they were written and before the checkpoint of
their epoch: the repeated epoch has the same loss, and changes nothing.
"""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from safetensors.torch import load_model, save_model

from pipeline.storage.outputs import atomic_file
from pipeline.train.result import Metrics

_WEIGHTS = "best-{epoch}.safetensors"
_STATE = "best.json"


class BestEpoch:
    """`folder`: the folder of the checkpoints. `epoch` and `metrics` of the best epoch are None before the first one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.epoch: int | None = None
        self.metrics: Metrics | None = None
        if (folder / _STATE).exists():
            found = json.loads((folder / _STATE).read_bytes())
            self.epoch, self.metrics = found["epoch"], Metrics(**found["metrics"])

    def compare(self, epoch: int, metrics: Metrics, model: Any, *, write: bool) -> None:
        """Keep the weights if the epoch has a finite loss that is smaller than that of every epoch before."""
        if metrics.loss is None or not math.isfinite(metrics.loss) or not self._is_better(metrics.loss):
            return
        if write:
            self._write(epoch, metrics, model)
        self.epoch, self.metrics = epoch, metrics

    def restore(self, model: Any) -> None:
        """Load the kept weights into the model."""
        load_model(model, self._folder / _WEIGHTS.format(epoch=self.epoch))

    def _is_better(self, loss: float) -> bool:
        best = None if self.metrics is None else self.metrics.loss
        return best is None or loss < best

    def _write(self, epoch: int, metrics: Metrics, model: Any) -> None:
        """The state comes last: it names weights that are complete."""
        self._folder.mkdir(parents=True, exist_ok=True)
        before = list(self._folder.glob(_WEIGHTS.format(epoch="*")))
        weights = self._folder / _WEIGHTS.format(epoch=epoch)
        save_model(model, str(weights))
        with atomic_file(self._folder / _STATE) as file:
            file.write(json.dumps({"epoch": epoch, "metrics": dataclasses.asdict(metrics)}).encode())
        for old in before:
            if old != weights:
                old.unlink()
