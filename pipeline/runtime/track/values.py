"""What is drawn of a status: counts of all starts, and shares, paces and costs of this one."""

from dataclasses import asdict

from pipeline.core.pace import Pace
from pipeline.core.progress import Status


def step_of(status: Status) -> int:
    """Where a status stands on the axis: rollouts of all starts, so that a later start goes on where the one before ended."""
    return status.rollouts_before + status.rollouts


def values_of(status: Status, pace: Pace, price: float | None) -> dict[str, float]:
    """By name; what is not known is left out. `price`: of a device for an hour."""
    hours = status.device_hours
    known = {
        "units_done": status.units_done,
        "prefixes_decided": status.prefixes_decided,
        "rollouts": step_of(status),
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
