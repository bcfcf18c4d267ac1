"""Counts vLLM's work while requests still run, from its statistics of every engine step.

Completions arrive only when they are final, and for long answers minutes pass between them.
"""

import time
from collections.abc import Callable
from typing import Any

from pipeline.core.progress import EngineWork


class SlotMeter:
    """Integrates over time the share of an engine's request slots that are empty while no request waits.

    A request counts from when it is given to vLLM, because vLLM reports running requests only after a step, which may take
    seconds. A request that vLLM itself keeps waiting, for KV cache or for the next step, shows that no slot is usable.
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
        """Seconds since `open`, weighted with the share of empty slots."""
        return self._seconds + (self._clock() - self._since) * self._unfilled()

    def open(self, capacity: int) -> None:
        """Set the number of slots. Time before this call does not count."""
        self._pass_time()
        self._capacity = capacity

    def take(self, taken: int, waiting: int) -> None:
        """Set the number of requests that vLLM has and the number that wait in this process."""
        self._pass_time()
        self._taken, self._waiting = taken, waiting

    def hold(self, held: int) -> None:
        """Set the number of requests that vLLM keeps waiting."""
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
    """A stat logger for vLLM, and its own factory: pass it in `stat_loggers`.

    Its `work` leaves out `finished`, `attended` and `unfilled_seconds`. For the last it reports vLLM's waiting requests to
    `slots`.
    """

    def __init__(self, slots: SlotMeter) -> None:
        self.work = EngineWork()
        self._slots = slots

    def __call__(self, *_engine: Any) -> "TokenMeter":
        return self

    def record(self, scheduler_stats: Any, iteration_stats: Any, *_others: Any, **_more: Any) -> None:
        """Called by vLLM after every engine step. Either argument may be None."""
        if scheduler_stats is not None:
            # Newer versions count postponed requests separately.
            put_off = getattr(scheduler_stats, "num_skipped_waiting_reqs", 0)
            self._slots.hold(scheduler_stats.num_waiting_reqs + put_off)
        if iteration_stats is not None:
            prompts = iteration_stats.prompt_token_stats
            self.work += EngineWork(
                generated=iteration_stats.num_generation_tokens,
                steps=int(iteration_stats.num_generation_tokens > 0),
                prompt=prompts.total,
                prefilled=prompts.computed,
            )

    def log_engine_initialized(self) -> None:
        """Required by vLLM, which calls it once. Does nothing."""


def leave_prometheus_out(engine: Any) -> None:
    """Remove the Prometheus logger that vLLM's `AsyncLLM` always adds: it updates a histogram for every token.

    A version of vLLM that stores its loggers elsewhere keeps it, which only costs time.
    """
    manager = getattr(engine, "logger_manager", None)
    if manager is not None:
        manager.stat_loggers = [
            logger for logger in manager.stat_loggers if type(logger).__name__ != "PrometheusStatLogger"
        ]
