"""A run that is tracked: its statuses go to a sink, from a thread of their own, so that a slow one holds up nothing.

Only the newest status waits. A sink that fails is told of once, and gets nothing more; the run goes on.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from pipeline.config.label import LabelConfig
from pipeline.config.recorded import flat
from pipeline.core.pace import pace
from pipeline.core.progress import Status
from pipeline.runtime.track.base import Sink
from pipeline.runtime.track.values import step_of, values_of
from pipeline.storage.objects import SCHEME_END
from pipeline.storage.place import last_part
from pipeline.storage.starts import TRACKED, Course

END_SECONDS = 30.0
"""How long a run waits at its end for what was sent last."""


@contextmanager
def tracked(
    sink: Sink | None, config: LabelConfig, place: str, watch: Callable[[Status], None]
) -> Iterator[Callable[[Status], None]]:
    """What to tell a status, which hands it on to `watch`; `place` is that of the run directory.

    Nothing is sent of a start that finds nothing owed.
    """
    if sink is None:
        yield watch
        return
    tracking = _Tracking(sink, config, place)

    def tell(status: Status) -> None:
        tracking.take(status)
        watch(status)

    try:
        yield tell
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
        if status is None or step_of(status) <= sent:
            return sent
        now = pace(self._course.samples, status.rollouts_expected)
        self._sink.log(step_of(status), values_of(status, now, self._config.plan.gpu_hour_price))
        return step_of(status)


def _flat_settings(config: LabelConfig) -> dict[str, object]:
    return {key: plain for name, value in asdict(config).items() for key, plain in flat(name, value).items()}
