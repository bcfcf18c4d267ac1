"""A run's progress as metrics of a Ray cluster: each node's agent offers its drivers' to Prometheus, as `ray_stepvalue_...`.

They carry the run's name, and are those of the start at work; counters begin at 0 with it. With `actors` and `cluster`, the
only file that imports ray.
"""

from dataclasses import asdict

from ray.util.metrics import Counter, Gauge

from pipeline.core.progress import Status

PREFIX = "stepvalue"
_RUN = "run"
_GAUGES = {
    "units": "units of the run",
    "units_done": "units that are whole",
    "prefixes": "prefixes of the units that were begun",
    "prefixes_decided": "of these, those that are asked for no more",
    "grader_queue": "completions that wait for their verdict",
    "workers": "workers at work",
}
_COUNTERS = {
    "rollouts_total": "rollouts that have come in",
    "tokens_total": "their tokens",
    "truncated_total": "rollouts that the token limit cut",
    "device_seconds_total": "what workers took of devices",
}


class RunMetrics:
    """A watcher of a run, see `crew.Watcher`; for a process that has joined a cluster. `run`: the name that metrics carry."""

    def __init__(self, run: str) -> None:
        self._told: dict[str, float] = {}
        self._gauges = {name: Gauge(f"{PREFIX}_{name}", text, (_RUN,)) for name, text in _GAUGES.items()}
        self._counters = {name: Counter(f"{PREFIX}_{name}", text, (_RUN,)) for name, text in _COUNTERS.items()}
        self._requests = Gauge(f"{PREFIX}_requests", "requests at the engines", (_RUN, "state"))
        self._verdicts = Counter(f"{PREFIX}_verdicts_total", "rollouts by what they came to", (_RUN, "verdict"))
        for metric in (*self._gauges.values(), *self._counters.values(), self._requests, self._verdicts):
            metric.set_default_tags({_RUN: run})

    def __call__(self, status: Status) -> None:
        values = {
            "units": status.units,
            "units_done": status.units_done,
            "prefixes": status.prefixes,
            "prefixes_decided": status.prefixes_decided,
            "grader_queue": status.load.grading,
            "workers": status.workers,
        }
        for name, value in values.items():
            self._gauges[name].set(value)
        for state, value in (("running", status.load.running), ("waiting", status.load.waiting)):
            self._requests.set(value, {"state": state})
        verdicts = asdict(status.verdicts)
        counts = {
            "rollouts_total": status.rollouts,
            "tokens_total": status.tokens,
            "truncated_total": verdicts.pop("truncated"),
            "device_seconds_total": status.device_seconds,
        }
        for name, count in counts.items():
            self._raise(self._counters[name], name, count)
        for verdict, count in verdicts.items():
            self._raise(self._verdicts, verdict, count, {"verdict": verdict})

    def _raise(self, counter: Counter, name: str, count: float, tags: dict[str, str] | None = None) -> None:
        """Have a counter stand at `count`; Ray's take what is new."""
        new = count - self._told.get(name, 0)
        if new > 0:
            counter.inc(new, tags)
            self._told[name] = count
