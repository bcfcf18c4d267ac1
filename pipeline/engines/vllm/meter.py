"""Counts what vLLM does while requests still run, from the statistics that it keeps of every engine step.

The completions themselves come when they are final, which for long answers is minutes apart.
"""

import time
from collections.abc import Callable
from typing import Any

from pipeline.core.progress import EngineWork


class PlaceMeter:
    """Integrates over time the share of an engine's places that no request has, while none waits for one.

    Requests count from when they are handed to vLLM, since it tells what runs only after a step, which may take seconds.
    One that vLLM itself keeps waiting, for room in its KV cache or for the next step, shows that no place is to be had.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._seconds = 0.0
        self._capacity = 0
        self._taken = 0
        self._waiting = 0
        self._held = 0

    @property
    def unfilled_seconds(self) -> float:
        """Up to now, since `open`."""
        return self._seconds + (self._clock() - self._since) * self._unfilled()

    def open(self, capacity: int) -> None:
        """From now on there are so many places; until then there was none to fill."""
        self._pass_time()
        self._capacity = capacity

    def take(self, taken: int, waiting: int) -> None:
        """From now on so many requests are with vLLM, and so many wait on our side."""
        self._pass_time()
        self._taken, self._waiting = taken, waiting

    def hold(self, held: int) -> None:
        """From now on vLLM keeps so many of its requests waiting."""
        self._pass_time()
        self._held = held

    def _pass_time(self) -> None:
        now = self._clock()
        self._seconds += (now - self._since) * self._unfilled()
        self._since = now

    def _unfilled(self) -> float:
        if not self._capacity or self._waiting or (self._held and self._taken):
            return 0.0
        return max(0.0, 1 - self._taken / self._capacity)


class TokenMeter:
    """A stat logger as vLLM 0.26 to 0.33 wants one, and its own factory: pass it in `stat_loggers`.

    Its `work` knows nothing of `attended` and `unfilled_seconds`; of the latter it tells `places` what it hears.
    """

    def __init__(self, places: PlaceMeter) -> None:
        self.work = EngineWork()
        self._places = places

    def __call__(self, *_engine: Any) -> "TokenMeter":
        return self

    def record(self, scheduler_stats: Any, iteration_stats: Any, *_others: Any, **_more: Any) -> None:
        """What vLLM calls after every engine step. Either is None for one that has none to tell."""
        if scheduler_stats is not None:
            # Newer versions count apart those that they have put off.
            put_off = getattr(scheduler_stats, "num_skipped_waiting_reqs", 0)
            self._places.hold(scheduler_stats.num_waiting_reqs + put_off)
        if iteration_stats is not None:
            prompts = iteration_stats.prompt_token_stats
            self.work += EngineWork(
                generated=iteration_stats.num_generation_tokens,
                steps=int(iteration_stats.num_generation_tokens > 0),
                prompt=prompts.total,
                prefilled=prompts.computed,
            )

    def log_engine_initialized(self) -> None:
        """vLLM calls it once; there is nothing to say."""


def leave_prometheus_out(engine: Any) -> None:
    """Take out of vLLM's `AsyncLLM` the logger that it adds beside any other: that one fills a histogram for every token.

    A vLLM that keeps its loggers elsewhere keeps that one too, which costs time and nothing else.
    """
    manager = getattr(engine, "logger_manager", None)
    if manager is not None:
        manager.stat_loggers = [
            logger for logger in manager.stat_loggers if type(logger).__name__ != "PrometheusStatLogger"
        ]
