"""The limit of a plan: a run that would go beyond it ends, and keeps what it has."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.config import LabelConfig
from pipeline.errors import BudgetSpent, UsageError
from pipeline.forecast import Forecast, Limit, decoded_forecast
from pipeline.progress import Status
from pipeline.settings import flat

LOOK_SECONDS = 1.0
"""How often at least a run with a limit looks at what it has spent."""
_ASKED = {"sampling": ("rollouts",), "estimator": ("target_sd", "budget", "run_budget", "budget_unit")}


def asked_beyond_identity(config: LabelConfig) -> dict[str, object]:
    """What is asked of a run, and may be asked for later: what `state.identity` leaves out and what costs."""
    return {
        key: plain
        for section, names in _ASKED.items()
        for name in names
        for key, plain in flat(f"{section}.{name}", getattr(getattr(config, section), name)).items()
    }


def planned_budget(path: str, facts: Mapping[str, object], config: LabelConfig) -> Forecast:
    """The plan at `path`. Raises UsageError where it cannot be read or is that of another run, naming what differs."""
    try:
        forecast = decoded_forecast(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"budget={path} is no plan: {cause}; make one with `plan`") from error
    wanted, planned = {**facts, **asked_beyond_identity(config)}, {**forecast.identity, **forecast.settings}
    differing = [key for key in sorted({*wanted, *planned}) if wanted.get(key) != planned.get(key)]
    if differing:
        changes = "; ".join(f"{key} is {wanted.get(key)!r}, there {planned.get(key)!r}" for key in differing[:5])
        raise UsageError(f"budget={path} is the plan of another run ({changes}): plan this one")
    return forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlay:
    """What a run has cost so far: tokens that were generated, and hours of devices."""

    tokens: int = 0
    device_hours: float = 0.0


class Seldom:
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

    It ends the run before the tokens of the limit are reached, if the run goes on until the next look as fast as between the
    last two.
    """

    def __init__(self, limit: Limit, before: Outlay) -> None:
        self._limit = limit
        self._before = before
        self._last_tokens = before.tokens
        self._at_next_look = before.tokens

    def check(self, status: Status) -> None:
        """Raise BudgetSpent where the limit is reached, or will be at the next look."""
        if status.units and status.units_done == status.units:
            return
        tokens = self._before.tokens + status.generated
        if tokens != self._last_tokens:
            self._at_next_look = 2 * tokens - self._last_tokens
            self._last_tokens = tokens
        hours = self._before.device_hours + status.device_hours
        limit = self._limit
        if limit.tokens is not None and (tokens >= limit.tokens or self._at_next_look > limit.tokens):
            self._stop(status, f"{tokens:,} of {limit.tokens:,} tokens")
        if limit.device_hours is not None and hours >= limit.device_hours:
            self._stop(status, f"{hours:.2f} of {limit.device_hours:.2f} device hours")

    def _stop(self, status: Status, spent: str) -> None:
        raise BudgetSpent(
            f"the budget is spent: {spent}; {status.units_done} of {status.units} units are whole "
            "and what came of others is kept. To go on, raise `limit` in the plan, or start again without budget="
        )
