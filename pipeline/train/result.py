"""`train.json` in the model's folder: the settings and labels of the training, and the metrics on held-out problems."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.config.recorded_settings import flatten_settings
from pipeline.core.errors import StoreError, UsageError
from pipeline.core.statistics import separation
from pipeline.storage.outputs import atomic_file
from pipeline.train.settings import TrainConfig

NAME = "train.json"
CHECKPOINTS = "checkpoints"
_STATE = "trainer_state.json"
_ELSEWHERE = ("out",)
"""Settings that may differ when training is resumed."""
GOOD_ABOVE = 0.5
"""A step with a higher P(good) is predicted as good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Metrics on held-out problems; None if there is nothing to measure.

    `loss`: the training loss per step, over the `steps` that it can use. `auc` and `accuracy`: of `good` steps against `bad`
    ones; other steps have no label. `brier`: mean square of P(good) minus the step's value.
    """

    steps: int
    good: int
    bad: int
    loss: float | None
    auc: float | None
    accuracy: float | None
    brier: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The content of `train.json`. `labels`: hash of the tokens and targets of all chains. `metrics`: None during training."""

    settings: dict[str, Any]
    labels: str
    metrics: Metrics | None = None


def settings_of(config: TrainConfig) -> dict[str, Any]:
    """The settings that the result depends on, by name."""
    values = dataclasses.asdict(config)
    return {name: flatten_settings(name, value)[name] for name, value in values.items() if name not in _ELSEWHERE}


def read_record(out: Path, config: TrainConfig) -> Record | None:
    """Read the record of an earlier start with the same settings; None without one.

    Raises UsageError for a folder that holds something else or was made with other settings (the message names the first one
    that differs); StoreError for a damaged record.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"out={out} is a file: name a folder")
    if not (out / NAME).exists():
        if out.is_dir() and any(out.iterdir()):
            raise UsageError(f"out={out} holds something else: name a folder that is empty or does not exist")
        return None
    try:
        found = json.loads((out / NAME).read_bytes())
        metrics = found["metrics"]
        record = Record(
            settings=found["settings"],
            labels=found["labels"],
            metrics=None if metrics is None else Metrics(**metrics),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{out / NAME} cannot be read ({error}): name another folder, or remove this one") from error
    wanted = settings_of(config)
    for name in sorted(wanted.keys() | record.settings.keys()):
        was, now = record.settings.get(name), wanted.get(name)
        if was != now:
            raise UsageError(
                f"out={out} was trained with {name}={was!r}, not {now!r}: change {name} back, or name another folder"
            )
    return record


def write_record(out: Path, record: Record) -> None:
    """Write the record. Raises StoreError if the folder cannot be written."""
    with atomic_file(out / NAME) as file:
        file.write(json.dumps(dataclasses.asdict(record), indent=1).encode())


def last_checkpoint(out: Path) -> Path | None:
    """The newest complete checkpoint. A checkpoint is complete when its state is readable, because that is written last."""
    found = [
        (int(path.parent.name.rpartition("-")[2]), path) for path in (out / CHECKPOINTS).glob(f"checkpoint-*/{_STATE}")
    ]
    for _, path in sorted(found, reverse=True):
        try:
            json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        return path.parent
    return None


def auc(scores: Sequence[float], labels: Sequence[int | None]) -> float | None:
    """The probability that a good step (1) has a higher score than a bad one (0), with ties counting half: the Mann-Whitney
    statistic. None without good or without bad steps. Steps with label None do not count."""
    known = [(score, label) for score, label in zip(scores, labels, strict=True) if label is not None]
    good = np.array([score for score, label in known if label == 1])
    bad = np.array([score for score, label in known if label != 1])
    return separation(good, bad) if len(good) and len(bad) else None


def accuracy(scores: Sequence[float], labels: Sequence[int | None]) -> float | None:
    """The share of labelled steps that `GOOD_ABOVE` classifies correctly."""
    right = [
        (score > GOOD_ABOVE) == (label == 1) for score, label in zip(scores, labels, strict=True) if label is not None
    ]
    return sum(right) / len(right) if right else None


def brier(scores: Sequence[float], values: Sequence[float | None]) -> float | None:
    """The mean square of score - value over steps with a value (Brier 1950, for known probabilities)."""
    squares = [(score - value) ** 2 for score, value in zip(scores, values, strict=True) if value is not None]
    return sum(squares) / len(squares) if squares else None
