"""Exports metrics of a run. Only this file, `cluster`, `connection` and `actors` import ray.

The progress of a run is part of the cluster's metrics: the agent of each node exports it to Prometheus as `ray_stepvalue_...`.
The metrics carry the name of the run and describe the current start; counters begin at 0 with each start.
"""

from dataclasses import asdict
from operator import attrgetter

from ray.util.metrics import Counter, Gauge

from pipeline.core.progress import Status

PREFIX = "stepvalue"
_RUN = "run"
_GAUGES = {
    "units": ("units of the run", "units"),
    "units_done": ("units that are done", "units_done"),
    "prefixes": ("prefixes of the units that have begun", "prefixes"),
    "prefixes_decided": ("prefixes that need no more rollouts", "prefixes_decided"),
    "grader_queue": ("completions that wait for their verdict", "load.grading"),
    "workers": ("workers that are running", "workers"),
}
"""What each is, and the part of a status that has its value."""
_COUNTERS = {
    "rollouts_total": ("finished rollouts", "rollouts"),
    "tokens_total": ("tokens of finished rollouts", "tokens"),
    "truncated_total": ("rollouts that the token limit cut", "verdicts.truncated"),
    "device_seconds_total": ("device time that workers have used, in seconds", "device_seconds"),
}


class RunMetrics:
    """A watcher (see `worker_handle.Watcher`) that exports metrics, for a process that has joined a cluster.

    `run`: the name of the run in the metrics.
    """

    def __init__(self, run: str) -> None:
        self._sent: dict[str, float] = {}
        self._gauges = {name: Gauge(f"{PREFIX}_{name}", text, (_RUN,)) for name, (text, _) in _GAUGES.items()}
        self._counters = {name: Counter(f"{PREFIX}_{name}", text, (_RUN,)) for name, (text, _) in _COUNTERS.items()}
        self._requests = Gauge(f"{PREFIX}_requests", "requests at the engines, by state", (_RUN, "state"))
        self._verdicts = Counter(f"{PREFIX}_verdicts_total", "finished rollouts by verdict", (_RUN, "verdict"))
        for metric in (*self._gauges.values(), *self._counters.values(), self._requests, self._verdicts):
            metric.set_default_tags({_RUN: run})

    def __call__(self, status: Status) -> None:
        for name, (_, part) in _GAUGES.items():
            self._gauges[name].set(attrgetter(part)(status))
        for state, value in (("running", status.load.running), ("waiting", status.load.waiting)):
            self._requests.set(value, {"state": state})
        for name, (_, part) in _COUNTERS.items():
            self._raise(self._counters[name], name, attrgetter(part)(status))
        for verdict, count in asdict(status.verdicts).items():
            if verdict != "truncated":
                self._raise(self._verdicts, verdict, count, {"verdict": verdict})

    def _raise(self, counter: Counter, name: str, count: float, tags: dict[str, str] | None = None) -> None:
        """Raise a counter to `count`. Ray's counters take the increment."""
        new = count - self._sent.get(name, 0)
        if new > 0:
            counter.inc(new, tags)
            self._sent[name] = count
