"""What stands in `out` beside the model: what it was trained with and on, and how it came out, which is how well probabilities
of good steps fit held-out labels.
"""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.config.recorded_settings import flatten_settings
from pipeline.config.renamed import current_settings
from pipeline.core.errors import StoreError, UsageError
from pipeline.core.statistics import separation
from pipeline.storage.outputs import atomic_file
from pipeline.train.settings import TrainConfig

NAME = "train.json"
CHECKPOINTS = "checkpoints"
_STATE = "trainer_state.json"
_ELSEWHERE = ("out",)
"""Settings that may differ when training goes on."""
GOOD_ABOVE = 0.5
"""P(good) of a step that is taken for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """On held-out problems; None where there was nothing to measure it on. `loss`: per step, as trained, over the `steps` that
    have what it is about. `auc` and `accuracy`: of the `good` steps against the `bad` ones, others having no label. `brier`:
    mean square of P(good) less the step's value."""

    steps: int
    good: int
    bad: int
    loss: float | None
    auc: float | None
    accuracy: float | None
    brier: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """`labels`: hash of the tokens and targets of all chains. `metrics`: None while training."""

    settings: dict[str, Any]
    labels: str
    metrics: Metrics | None = None


def settings_of(config: TrainConfig) -> dict[str, Any]:
    """All that the result depends on, by name."""
    values = dataclasses.asdict(config)
    return {name: flatten_settings(name, value)[name] for name, value in values.items() if name not in _ELSEWHERE}


def read_record(out: Path, config: TrainConfig) -> Record | None:
    """What an earlier start with the same settings left; None where there was none.

    Raises UsageError for a folder that holds something else or was made with other settings, naming the first that differs.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"out={out} is a file: name a folder")
    if not (out / NAME).exists():
        if out.is_dir() and any(out.iterdir()):
            raise UsageError(f"out={out} holds something else: name a folder that is empty or not there")
        return None
    try:
        found = json.loads((out / NAME).read_bytes())
        metrics = found["metrics"]
        record = Record(
            settings=current_settings("train", found["settings"]),
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
                f"out={out} was trained with {name}={was!r}, not {now!r}: set that back, or name another folder"
            )
    return record


def write_record(out: Path, record: Record) -> None:
    """Raises StoreError where the folder cannot be written."""
    with atomic_file(out / NAME) as file:
        file.write(json.dumps(dataclasses.asdict(record), indent=1).encode())


def last_checkpoint(out: Path) -> Path | None:
    """The newest checkpoint that was written whole: its state is written last."""
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
    """The probability that a good step (1) has a higher score than a bad one (0), ties half: the Mann-Whitney statistic. None
    unless there are both; steps of which the label is None do not count."""
    known = [(score, label) for score, label in zip(scores, labels, strict=True) if label is not None]
    good = np.array([score for score, label in known if label == 1])
    bad = np.array([score for score, label in known if label != 1])
    return separation(good, bad) if len(good) and len(bad) else None


def accuracy(scores: Sequence[float], labels: Sequence[int | None]) -> float | None:
    """The share of labelled steps that lie on the right side of `GOOD_ABOVE`."""
    right = [
        (score > GOOD_ABOVE) == (label == 1) for score, label in zip(scores, labels, strict=True) if label is not None
    ]
    return sum(right) / len(right) if right else None


def brier(scores: Sequence[float], values: Sequence[float | None]) -> float | None:
    """The mean square of score - value over steps that have one (Brier 1950, of a known probability)."""
    squares = [(score - value) ** 2 for score, value in zip(scores, values, strict=True) if value is not None]
    return sum(squares) / len(squares) if squares else None
