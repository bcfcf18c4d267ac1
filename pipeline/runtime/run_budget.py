"""Enforces the limit of a plan: a run that would exceed it stops and keeps its committed work."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from pipeline.config.fields import FREE, marked_settings
from pipeline.config.label import LabelConfig
from pipeline.config.recorded_settings import flatten_settings
from pipeline.core.errors import BudgetSpent, UsageError
from pipeline.core.forecast import Forecast, Limit, decode_forecast
from pipeline.core.formatting import format_unfinished
from pipeline.core.progress import Status
from pipeline.estimators.registry import estimator_for

LOOK_SECONDS = 1.0
"""Longest time between two checks of what a run with a limit has spent."""
_WINDOW_SECONDS = 10.0
_MOST_AHEAD = 0.05
"""Largest share of the limit that may be left when a run stops. A run that generates more per second may exceed the limit."""


def requested_beyond_identity(config: LabelConfig) -> dict[str, object]:
    """The settings that affect the cost of a run but are not part of `state.identity`, because they may change later."""
    estimator = estimator_for(config.estimator).settings
    asked = {name: getattr(estimator, name) for name in marked_settings(type(estimator), FREE)}
    return {**flatten_settings("estimator", asked), "sampling.rollouts": config.sampling.rollouts}


def budget_from_plan(path: str, run_identity: Mapping[str, object], config: LabelConfig) -> Forecast:
    """The plan at `path`. Raises UsageError if it cannot be read or is for another run; the message names what differs."""
    try:
        forecast = decode_forecast(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"budget={path} is not a plan: {cause}; make one with `plan`") from error
    wanted, planned = {**run_identity, **requested_beyond_identity(config)}, {**forecast.identity, **forecast.settings}
    differing = [key for key in sorted({*wanted, *planned}) if wanted.get(key) != planned.get(key)]
    if differing:
        changes = "; ".join(f"{key} is {wanted.get(key)!r}, in the plan {planned.get(key)!r}" for key in differing[:5])
        raise UsageError(f"budget={path} is the plan of another run ({changes}): make a plan for this run")
    return forecast


class Throttle:
    """Passes on a status with a new stage or newly finished units at once, and any other at most every `seconds` seconds."""

    def __init__(self, watch: Callable[[Status], None], seconds: float) -> None:
        self._watch = watch
        self._seconds = seconds
        self._last: Status | None = None
        self._passed_at = 0.0

    def __call__(self, status: Status) -> None:
        now = time.monotonic()
        last = self._last
        news = last is None or (status.stage, status.units_done) != (last.stage, last.units_done)
        if news or now - self._passed_at >= self._seconds:
            self._last, self._passed_at = status, now
            self._watch(status)


class Spending:
    """Checks every status of a run with a limit. `tokens` and `hours`: what earlier starts have spent, `hours` without the time
    that their workers took to start, which no limit counts.

    It stops the run if the tokens would exceed the limit by the next check, at the speed of the last `_WINDOW_SECONDS`, and if
    the run still needs that many tokens. A run may exceed its limit by what its engines generate between two checks, and by
    the rollouts in progress when it stops.
    """

    def __init__(self, limit: Limit, tokens: int, hours: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._tokens, self._hours = limit, tokens, hours
        self._clock = clock
        self._looks: deque[tuple[float, int]] = deque([(clock(), 0)])

    def check(self, status: Status) -> None:
        """Raise BudgetSpent if the limit is reached, or would be exceeded by the next check."""
        if status.units and status.units_done == status.units:
            return
        tokens = self._tokens + status.generated
        limit = self._limit
        if limit.tokens is not None:
            ahead = min(self._until_next_look(status.generated), _owed(status), _MOST_AHEAD * limit.tokens)
            outlook = tokens + ahead
            if tokens >= limit.tokens or outlook > limit.tokens:
                self._stop(status, f"{tokens:,} of {limit.tokens:,} tokens are spent")
        hours = self._hours + status.working_hours
        if limit.device_hours is not None and hours > limit.device_hours:
            self._stop(status, f"{hours:.3g} of {limit.device_hours:.3g} device hours of work are spent")

    def _until_next_look(self, generated: int) -> float:
        now = self._clock()
        if not generated:
            self._looks.clear()
        self._looks.append((now, generated))
        while len(self._looks) > 2 and now - self._looks[0][0] > _WINDOW_SECONDS:
            self._looks.popleft()
        since, before = self._looks[0]
        return (generated - before) / max(now - since, LOOK_SECONDS) * LOOK_SECONDS

    def _stop(self, status: Status, spent: str) -> None:
        raise BudgetSpent(
            f"the run stops at its limit: {spent}. {format_unfinished(status.units - status.units_done, status.units)}, "
            "and their finished rollouts are kept. To continue, raise `limit` in the plan, limit.device_hours or "
            "limit.money, or start again without them"
        )


def _owed(status: Status) -> float:
    """Estimated number of tokens that the run still needs; infinite if unknown."""
    if not status.rollouts or not status.rollouts_expected:
        return math.inf
    return max(0.0, status.rollouts_expected * status.tokens / status.rollouts - status.generated)


def overspent_note(limit: Limit, tokens: int) -> str:
    """A note for the user if a finished run with `tokens` tokens exceeded its limit; else an empty text."""
    if limit.tokens is None or tokens <= limit.tokens:
        return ""
    return f"{tokens:,} of {limit.tokens:,} tokens: the run finished before the next check of its limit could stop it"
