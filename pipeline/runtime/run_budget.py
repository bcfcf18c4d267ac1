"""The limit of a plan: a run that would go beyond it ends, and keeps what it has."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.config.fields import FREE, marked_settings
from pipeline.config.label import LabelConfig
from pipeline.config.recorded_settings import flatten_settings
from pipeline.core.errors import BudgetSpent, UsageError
from pipeline.core.forecast import Forecast, Limit, decode_forecast
from pipeline.core.progress import Status
from pipeline.estimators.registry import estimator_for

LOOK_SECONDS = 1.0
"""How often at least a run with a limit looks at what it has spent."""
_WINDOW_SECONDS = 10.0
_MOST_AHEAD = 0.05
"""Of the limit: no run is ended sooner than so short of it. One that makes more in a second may go beyond it instead."""
_ALWAYS_RECORDED: Mapping[str, object] = {
    "estimator.target_sd": 0.1,
    "estimator.budget": None,
    "estimator.run_budget": None,
    "estimator.budget_unit": "tokens",
}
"""What plans record of our own estimators, also of those that have no such setting."""


def requested_beyond_identity(config: LabelConfig) -> dict[str, object]:
    """What is asked of a run, and may be asked for later: what `state.identity` leaves out and what costs."""
    estimator = estimator_for(config.estimator).settings
    asked = {name: getattr(estimator, name) for name in marked_settings(type(estimator), FREE)}
    return {**_ALWAYS_RECORDED, **flatten_settings("estimator", asked), "sampling.rollouts": config.sampling.rollouts}


def budget_from_plan(path: str, facts: Mapping[str, object], config: LabelConfig) -> Forecast:
    """The plan at `path`. Raises UsageError where it cannot be read or is that of another run, naming what differs."""
    try:
        forecast = decode_forecast(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"budget={path} is no plan: {cause}; make one with `plan`") from error
    wanted, planned = {**facts, **requested_beyond_identity(config)}, {**forecast.identity, **forecast.settings}
    differing = [key for key in sorted({*wanted, *planned}) if wanted.get(key) != planned.get(key)]
    if differing:
        changes = "; ".join(f"{key} is {wanted.get(key)!r}, there {planned.get(key)!r}" for key in differing[:5])
        raise UsageError(f"budget={path} is the plan of another run ({changes}): plan this one")
    return forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCost:
    """What a run has cost so far: tokens that were generated, and hours of devices."""

    tokens: int = 0
    device_hours: float = 0.0


class Throttle:
    """Passes on what is new, and else no status within so many seconds of the last."""

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
    """Looks at every status of a run that has a limit; `before`: what earlier starts have spent.

    It ends the run where the tokens of the limit would be gone by the next look, if the engines go on as fast as in the last
    `_WINDOW_SECONDS` and so much is owed still. A run may go beyond its limit by what its engines do between two looks, and by
    what is under way when it ends.
    """

    def __init__(self, limit: Limit, before: DeviceCost, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._before = before
        self._clock = clock
        self._looks: deque[tuple[float, int]] = deque([(clock(), 0)])

    def check(self, status: Status) -> None:
        """Raise BudgetSpent where the limit is reached, or would be at the next look."""
        if status.units and status.units_done == status.units:
            return
        tokens = self._before.tokens + status.generated
        limit = self._limit
        if limit.tokens is not None:
            ahead = min(self._until_next_look(status.generated), _owed(status), _MOST_AHEAD * limit.tokens)
            outlook = tokens + ahead
            if tokens >= limit.tokens or outlook > limit.tokens:
                self._stop(status, f"{tokens:,} tokens are spent, of {limit.tokens:,}")
        hours = self._before.device_hours + status.device_hours
        if limit.device_hours is not None and hours >= limit.device_hours:
            self._stop(status, f"{hours:.3g} device hours are spent, of {limit.device_hours:.3g}")

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
            f"the run ends at its limit: {spent}; {status.units_done} of {status.units} units are whole and what came of "
            "others is kept. To go on, raise `limit` in the plan, or start again without budget="
        )


def _owed(status: Status) -> float:
    """Tokens that are still to be generated, as far as it is known."""
    if not status.rollouts or not status.rollouts_expected:
        return math.inf
    return max(0.0, status.rollouts_expected * status.tokens / status.rollouts - status.generated)


def overspending(limit: Limit, tokens: int) -> str:
    """What a finished run of so many `tokens` went beyond its limit by, for the user; empty where it kept to it."""
    if limit.tokens is None or tokens <= limit.tokens:
        return ""
    return f"{tokens:,} tokens, of {limit.tokens:,}: the run was done before a look at what it had spent could end it"
