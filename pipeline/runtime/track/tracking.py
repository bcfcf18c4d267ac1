"""A run that is tracked: its statuses go to a sink, from a thread of their own, so that a slow one holds up nothing.

Only the newest status waits. A sink that fails is told of once, and gets nothing more; the run goes on. Drawn are counts of all
starts, and shares, paces and costs of this one.
"""

import sys
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
from pipeline.core.errors import UsageError
from pipeline.core.progress import Pace, Status, pace
from pipeline.storage.location import last_part
from pipeline.storage.objects import SCHEME_END
from pipeline.storage.starts import TRACKED, Course

END_SECONDS = 30.0
"""How long a run waits at its end for what was sent last."""


class Sink(Protocol):
    """What a system that draws runs is asked for. All calls come from one thread, which is not the main one.

    It may raise anything: a run goes on without it.
    """

    def start(self, name: str, settings: Mapping[str, object], folder: Path) -> None:
        """A start of the run of this name begins. `settings` are dotted keys with plain values; `folder` is for files."""
        ...

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """What holds at a step; steps grow."""
        ...

    def end(self) -> None:
        """Nothing more comes."""
        ...


def tracker_for(kind: Tracker) -> Sink | None:
    """The tracker that the settings ask for. Raises UsageError where its package is not there, or it cannot be used."""
    try:
        match kind:
            case Tracker.tensorboard:
                from pipeline.runtime.track.trackers import TensorBoard

                return TensorBoard()
            case Tracker.mlflow:
                from pipeline.runtime.track.trackers import Mlflow

                return Mlflow()
            case Tracker.wandb:
                from pipeline.runtime.track.trackers import WeightsAndBiases

                return WeightsAndBiases()
            case Tracker.none:
                return None
    except ImportError as error:
        raise UsageError(
            f"run.track={kind.value} needs a package that is not installed ({error}): pip install 'stepvalue[track]', or "
            "'.[track]' in a checkout"
        ) from error


@contextmanager
def tracking(
    sink: Sink | None, config: LabelConfig, place: str, watch: Callable[[Status], None]
) -> Iterator[Callable[[Status], None]]:
    """What to tell a status, which hands it on to `watch`; `place` is that of the run directory.

    Nothing is sent of a start that finds nothing owed.
    """
    if sink is None:
        yield watch
        return
    tracking = _Tracking(sink, config, place)

    def send(status: Status) -> None:
        tracking.take(status)
        watch(status)

    try:
        yield send
    finally:
        tracking.end()


def folder_of(place: str) -> Path:
    """Where a tracker's files go: into a run directory that is a folder, else below the working directory."""
    return Path(TRACKED) / last_part(place) if SCHEME_END in place else Path(place) / TRACKED


class _Tracking:
    def __init__(self, sink: Sink, config: LabelConfig, place: str) -> None:
        self._sink = sink
        self._config = config
        self._place = place
        self._course = Course()
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
            self._sink.start(last_part(self._place), _flat_settings(self._config), folder_of(self._place))
            sent, over = -1, False
            while not over:
                self._news.wait()
                self._news.clear()
                over = self._over
                sent = self._send(sent)
            self._sink.end()
        except Exception as error:  # noqa: BLE001  # whatever a tracker raises, the run is worth more
            reason = " ".join(str(error).split()) or type(error).__name__
            sys.stderr.write(f"stepvalue: run.track={self._config.run.track.value} is off, the run goes on: {reason}\n")

    def _send(self, sent: int) -> int:
        """Send the newest status if it is further than the last one that was `sent`; how far it is."""
        status = self._status
        if status is None or _step_of(status) <= sent:
            return sent
        now = pace(self._course.samples, status.rollouts_expected)
        self._sink.log(_step_of(status), values_of(status, now, self._config.plan.gpu_hour_price))
        return _step_of(status)


def _flat_settings(config: LabelConfig) -> dict[str, object]:
    return {
        key: plain for name, value in asdict(config).items() for key, plain in flatten_settings(name, value).items()
    }


def _step_of(status: Status) -> int:
    """Where a status stands on the axis: rollouts of all starts, so that a later start goes on where the one before ended."""
    return status.rollouts_before + status.rollouts


def values_of(status: Status, pace: Pace, price: float | None) -> dict[str, float]:
    """What is drawn of a status, by name; what is not known is left out. `price`: of a device for an hour."""
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
