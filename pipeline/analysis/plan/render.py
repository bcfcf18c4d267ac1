"""A plan as the terminal shows it."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pipeline.core.forecast import Cost, Forecast, Pilot, PlannedWork, Range, StartCost
from pipeline.core.formatting import format_count, format_duration, format_number
from pipeline.core.progress import SECONDS_PER_HOUR
from pipeline.display.document import Part, Table

_SHOWN_UNFIT = 5
_hours: Callable[[float], str] = partial(format_number, digits=2)


def plan_parts(forecast: Forecast, written: Path, proposal: str = "") -> Iterator[Part]:
    """The planned work, the pilot or the assumptions, the cost with each estimator, the plan's file, and a proposal."""
    pilot, hours_known = forecast.pilot, forecast.cost.device_hours is not None
    yield from _input_lines(forecast.planned)
    yield from _pilot_lines(pilot)
    yield _table(forecast)
    ranges = (
        "a range contains the real cost of 95 of 100 runs" if pilot.measured else "ranges rest on the assumptions alone"
    )
    yield f"          {ranges}{_devices(forecast)}"
    yield (
        f"starts    {pilot.start_seconds:.0f} s of each worker, {pilot.started_as}{', in the figures above' * hours_known}. "
        "Each start of the run costs that; no limit counts it"
    )
    yield f"plan      {written}: `label budget={written}` with these settings stops at about {_limit(forecast)}"
    if proposal:
        yield f"faster    {proposal}"


def _devices(forecast: Forecast) -> str:
    if forecast.cost.wall_hours is None:
        return "; hours are unknown without tokens/s: set plan.tokens_per_second"
    price = "" if forecast.gpu_hour_price is None else f" at {forecast.gpu_hour_price:g} per hour"
    return f"; {format_count(forecast.gpus, 'device')}{price}"


def _input_lines(planned: PlannedWork) -> Iterator[str]:
    about = "about " if planned.chains_drawn else ""
    yield f"rows      {planned.rows:,} read = {planned.used:,} used + {planned.rejected:,} rejected"
    if planned.rejects:
        yield "          " + ", ".join(f"{count:,} {reason}" for reason, count in planned.rejects.items())
    yield (
        f"work      {format_count(planned.problems, 'problem')}, {about}{format_count(planned.chains, 'chain')}, "
        f"{format_count(planned.steps, 'step')}, {format_count(planned.prefixes, 'distinct prefix')} to measure"
    )
    yield (
        f"prompts   {about}{format_count(planned.prompt_tokens, 'token')}, "
        f"{planned.distinct_prompt_tokens:,} if shared prefixes are counted once"
    )
    if planned.estimated:
        yield f"          {planned.estimated}"
    if planned.too_long and planned.context is not None:
        yield (
            f"too long  for the context of {format_count(planned.context, 'token')}: {format_count(planned.too_long, 'prefix')}"
        )
        yield from (f"          {where}" for where in planned.unfit[:_SHOWN_UNFIT])


def _pilot_lines(pilot: Pilot) -> Iterator[str]:
    speed = "unknown" if pilot.tokens_per_second is None else f"{_between(pilot.tokens_per_second)} per worker"
    if pilot.measured:
        yield (
            f"pilot     {format_count(pilot.problems, 'problem')}, {format_count(pilot.chains, 'chain')}, "
            f"{format_count(pilot.prefixes, 'prefix')}: {format_count(pilot.rollouts, 'rollout')}, "
            f"{format_count(pilot.tokens, 'token')} in {pilot.seconds:.0f} s, after {pilot.start_seconds:.0f} s to start"
        )
    else:
        yield f"pilot     none ({pilot.why_not}): the figures below are assumptions"
    yield (
        f"          success rate {_between(pilot.success_rate, 2)}, tokens per rollout "
        f"{_between(pilot.completion_tokens, 1)}, tokens/s {speed}"
    )


def _table(forecast: Forecast) -> Table:
    price = forecast.gpu_hour_price is not None
    rows = [
        (
            cost.estimator,
            _cell(cost.rollouts, "{:,.0f}".format),
            _cell(cost.tokens, "{:,.0f}".format),
            *_times(cost, price=price),
        )
        for cost in (forecast.cost, *forecast.others)
    ]
    return Table(
        heads=("estimator", "rollouts", "tokens", "device hours", "wall time", *(["money"] if price else [])),
        rows=(*rows, ("starts alone", "", "", *_times(forecast.starting, price=price))),
    )


def _times(cost: Cost | StartCost, *, price: bool) -> list[str]:
    known = [(cost.device_hours, _hours), (cost.wall_hours, _wall), *([(cost.money, _hours)] if price else [])]
    return ["unknown" if amount is None else _cell(amount, shown) for amount, shown in known]


def _limit(forecast: Forecast) -> str:
    limit = forecast.limit
    parts = [] if limit.tokens is None else [format_count(limit.tokens, "token")]
    if limit.device_hours is not None:
        parts.append(f"{_hours(limit.device_hours)} device hours of work")
    return " or ".join(parts)


def _between(known: Range, digits: int = 0) -> str:
    low, expected, high = (f"{part:,.{digits}f}" for part in (known.low, known.expected, known.high))
    return expected if low == high else f"{expected} ({low}–{high})"


def _cell(known: Range, shown: Callable[[float], str]) -> str:
    low, expected, high = (shown(part) for part in (known.low, known.expected, known.high))
    return expected if low == high else f"{expected}\n{low}–{high}"


def _wall(hours: float) -> str:
    return format_duration(round(hours * SECONDS_PER_HOUR))
