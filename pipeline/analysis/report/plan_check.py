"""The amounts of a run compared with its plan, from the records of its starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.core.errors import Absent
from pipeline.core.forecast import Forecast, Range, decode_forecast
from pipeline.core.records import Totals
from pipeline.storage.run_record import STAGED_INPUT
from pipeline.storage.starts import PLAN, Start, cost_of
from pipeline.storage.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAmount:
    """An amount of the plan and of the run. `planned` is None if the plan does not have it, `actual` if it is unknown.

    `digits`: number of decimals in texts.
    """

    name: str
    planned: Range | None
    actual: float | None
    digits: int = 0

    @property
    def inside(self) -> bool | None:
        """Whether `actual` is in the planned range; None if either is unknown."""
        return None if self.planned is None or self.actual is None else self.actual in self.planned

    @property
    def ratio(self) -> float | None:
        """`actual` divided by the expected amount; None if either is unknown or the expected amount is 0."""
        if self.planned is None or self.actual is None or self.planned.expected == 0:
            return None
        return self.actual / self.planned.expected


def compare_with_plan(
    plan: Forecast, totals: Totals, *, steps: int, starts: Sequence[Start]
) -> tuple[PlannedAmount, ...]:
    """`steps`: number of steps of all chains. Money uses the price of each start, and the plan's price for starts without
    one."""
    of_plan, cost = plan.planned, plan.cost
    spent = cost_of(starts, otherwise=plan.gpu_hour_price)
    hours = spent.device_hours if starts else None
    exact = [
        ("rows used", of_plan.used, totals.used),
        ("rows rejected", of_plan.rejected, totals.rejected),
        ("problems", of_plan.problems, totals.problems),
    ]
    if not of_plan.chains_drawn:
        exact += [
            ("chains", of_plan.chains, totals.chains),
            ("steps", of_plan.steps, steps),
            ("distinct prefixes", of_plan.prefixes, totals.prefixes - totals.too_long),
        ]
    return (
        *(
            PlannedAmount(name=name, planned=Range(low=planned, expected=planned, high=planned), actual=actual)
            for name, planned, actual in exact
        ),
        PlannedAmount(name="rollouts", planned=cost.rollouts, actual=totals.rollouts),
        PlannedAmount(name="tokens", planned=cost.tokens, actual=totals.tokens + totals.solution_tokens),
        PlannedAmount(name="device hours", planned=cost.device_hours, actual=hours, digits=2),
        PlannedAmount(name="money", planned=cost.money, actual=spent.money, digits=2),
    )


def plan_of(storage: Storage) -> tuple[Forecast | None, str]:
    """The plan in a run directory, if any, or why it cannot be used."""
    try:
        return decode_forecast(storage.read(PLAN)), ""
    except Absent:
        return None, ""
    except ValueError as error:
        return None, str(error)


def differing_settings(plan: Forecast, identity: Mapping[str, object]) -> tuple[str, ...]:
    """Keys of a run's identity whose values differ between plan and run; empty for the plan of this run."""
    keys = sorted({*plan.identity, *identity} - {STAGED_INPUT})
    return tuple(key for key in keys if plan.identity.get(key) != identity.get(key))
