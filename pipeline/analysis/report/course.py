"""How a run went over time, from what its starts told of themselves. Pure."""

from collections.abc import Sequence

from pipeline.core.progress import SECONDS_PER_HOUR
from pipeline.storage.starts import Start

POINTS = 240
"""At most, over all starts: more than a chart has room for."""


def course(starts: Sequence[Start]) -> list[dict[str, float]]:
    """Points in time: `hours` of work so far, the number of the `start` from 1, `tokens_per_second` since the point before, and
    `workers`, `running`, `waiting`, `grading` then. Time between starts is left out."""
    points: list[dict[str, float]] = []
    worked = 0.0
    every = max(1, -(-sum(len(start.samples) for start in starts) // POINTS))
    for number, start in enumerate(starts, start=1):
        seconds, tokens = 0.0, 0
        # Counted from the end, so that the last sample is among them.
        for sample in start.samples[(len(start.samples) - 1) % every :: every]:
            if sample.seconds > seconds:
                points.append(
                    {
                        "hours": (worked + sample.seconds) / SECONDS_PER_HOUR,
                        "start": number,
                        "tokens_per_second": (sample.tokens - tokens) / (sample.seconds - seconds),
                        "workers": sample.workers,
                        "running": sample.running,
                        "waiting": sample.waiting,
                        "grading": sample.grading,
                    }
                )
                seconds, tokens = sample.seconds, sample.tokens
        worked += max(seconds, 0.0)
    return points


def device_hours(starts: Sequence[Start]) -> float | None:
    """What all starts took of devices; None where none tells."""
    return sum(start.status.device_hours for start in starts) if starts else None


def money(starts: Sequence[Start], otherwise: float | None = None) -> float | None:
    """What starts with a price cost, each by its own, and the others by the price `otherwise`, without which they are left out;
    None where there is no price at all."""
    prices = [otherwise if start.price is None else start.price for start in starts]
    costs = [
        start.status.device_hours * price for start, price in zip(starts, prices, strict=True) if price is not None
    ]
    return sum(costs) if costs else None


def unpriced(starts: Sequence[Start]) -> int:
    """How many told no price."""
    return sum(start.price is None for start in starts)
