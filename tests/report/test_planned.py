"""Planned and actual amounts are compared, over all starts."""

from dataclasses import replace

import pytest

from pipeline.analysis.report.plan_check import compare_with_plan, differing_settings
from pipeline.core.progress import SpeedSample, Status
from pipeline.core.records import Totals
from pipeline.storage.starts import Start, cost_of
from tests.report.forecasts import forecast, without_cost_of_time

TOTALS = Totals(rows=9, used=7, rejected=2, problems=5, chains=9, prefixes=16, too_long=1, rollouts=45, tokens=1313,
                solution_tokens=148)  # fmt: skip


def sample(seconds: float, tokens: int) -> SpeedSample:
    return SpeedSample(
        seconds=seconds, units_done=0, prefixes_decided=0, rollouts=0, tokens=tokens, running=8, waiting=3, grading=1,
        workers=2, device_seconds=2 * seconds,
    )  # fmt: skip


def start(*samples: SpeedSample, price: float | None = 3.0, began_at: float = 0.0) -> Start:
    seconds = samples[-1].device_seconds if samples else 0.0
    return Start(
        start_id="a", host="h", pid=1, process="", began_at=began_at, at=began_at, price=price, samples=samples,
        status=Status(stage="done", device_seconds=seconds),
    )  # fmt: skip


def test_each_figure_stands_beside_its_plan() -> None:
    shown = {
        each.name: each
        for each in compare_with_plan(
            forecast(rollouts=50, tokens=1000), TOTALS, steps=23, starts=[start(sample(900, 5))]
        )
    }
    assert (shown["rows used"].actual, shown["rows used"].inside) == (7, True)
    assert (shown["distinct prefixes"].actual, shown["distinct prefixes"].inside) == (15, True)
    assert (shown["rollouts"].actual, shown["rollouts"].inside) == (45, True)
    assert (shown["tokens"].actual, shown["tokens"].inside) == (1461, False)
    assert shown["tokens"].ratio == pytest.approx(1.461)
    assert (shown["device hours"].actual, shown["device hours"].inside) == (0.5, True)
    assert (shown["money"].actual, shown["money"].inside) == (1.5, False)


def test_money_goes_by_the_prices_of_starts_and_else_by_that_of_the_plan() -> None:
    starts = [start(sample(900, 5)), start(sample(900, 5), price=None)]
    paid = {
        price: compare_with_plan(forecast(rollouts=50, tokens=1000, price=price), TOTALS, steps=23, starts=starts)[
            -1
        ].actual
        for price in (2.0, None)
    }
    assert paid == {2.0: 0.5 * 3 + 0.5 * 2, None: 0.5 * 3}
    assert cost_of(starts).unpriced == 1


def test_the_plan_of_another_run_names_what_differs() -> None:
    plan = replace(
        forecast(rollouts=50, tokens=1000), identity={"input": "a", "policy.model": "m", "staged_input": "x"}
    )
    assert differing_settings(plan, {"input": "a", "policy.model": "m", "staged_input": "y", "data.limit": None}) == ()
    assert differing_settings(plan, {"input": "b", "policy.model": "m"}) == ("input",)


def test_what_is_not_known_is_neither_inside_nor_outside() -> None:
    plan = without_cost_of_time(forecast(rollouts=50, tokens=1000, price=None))
    shown = {each.name: each for each in compare_with_plan(plan, TOTALS, steps=23, starts=[])}
    assert (shown["device hours"].planned, shown["device hours"].actual) == (None, None)
    assert (shown["money"].inside, shown["money"].ratio) == (None, None)


def test_a_plan_with_drawn_chains_knows_them_from_a_pilot_only() -> None:
    plan = forecast(rollouts=50, tokens=1000)
    drawn = replace(plan, planned=replace(plan.planned, chains_drawn=True))
    names = [each.name for each in compare_with_plan(drawn, TOTALS, steps=23, starts=[])]
    assert "chains" not in names
    assert "rows used" in names


def test_devices_and_money_are_those_of_all_starts() -> None:
    first, second = start(sample(1800, 900), sample(3600, 3600)), start(sample(360, 720), began_at=1e6)
    assert cost_of([first, second]).device_hours == pytest.approx(2.2)
    assert cost_of([first, second]).money == pytest.approx(6.6)
    assert cost_of([first, start(price=None)]).money == pytest.approx(6.0)
    assert cost_of([start(price=None)]).money is None
    assert cost_of([]).money is None
