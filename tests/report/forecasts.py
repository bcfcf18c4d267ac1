"""Synthetic plans to compare runs with."""

from dataclasses import replace

from pipeline.core.forecast import Cost, Forecast, Limit, Pilot, PlannedWork, Range, StartCost


def around(expected: float) -> Range:
    return Range(low=expected * 0.8, expected=expected, high=expected * 1.2)


def forecast(*, rollouts: float, tokens: float, price: float | None = 2.0) -> Forecast:
    """A plan of a run on nine rows, two of them unusable."""
    hours = around(0.5)
    amounts = {"rollouts": around(rollouts), "tokens": around(tokens), "money": around(1.0)}
    return Forecast(
        made_at="2026-11-22 08:00 UTC", identity={}, settings={},
        planned=PlannedWork(
            rows=9, used=7, rejected=2, rejects={}, problems=5, chains=9, steps=23, prefixes=15, too_long=1,
            prompt_tokens=700, distinct_prompt_tokens=500, context=300,
        ),
        pilot=Pilot(
            measured=False, why_not="made up", completion_tokens=around(30), success_rate=around(0.5),
            tokens_per_second=None,
        ),
        gpus=1, gpu_hour_price=price,
        starting=StartCost(device_hours=around(0.1), wall_hours=around(0.1), money=None),
        cost=Cost(estimator="fixed", device_hours=hours, wall_hours=hours, **amounts),
        others=(), limit=Limit(tokens=None),
    )  # fmt: skip


def without_cost_of_time(plan: Forecast) -> Forecast:
    return replace(plan, cost=replace(plan.cost, device_hours=None, wall_hours=None, money=None))
