"""What a run was planned to come to, beside what it came to. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.analysis.report.course import device_hours, money
from pipeline.core.forecast import Forecast, Range
from pipeline.core.records import Totals
from pipeline.storage.run_record import STAGED_INPUT
from pipeline.storage.starts import Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A figure of the plan. `planned` is None where none was made of it, `actual` where it is not known.

    `digits`: behind the point, when it is told.
    """

    name: str
    planned: Range | None
    actual: float | None
    digits: int = 0

    @property
    def inside(self) -> bool | None:
        """Whether what it came to lies in the planned range; None where either is not known."""
        return None if self.planned is None or self.actual is None else self.actual in self.planned

    @property
    def ratio(self) -> float | None:
        """What it came to over what was expected."""
        if self.planned is None or self.actual is None or self.planned.expected == 0:
            return None
        return self.actual / self.planned.expected


def compared(plan: Forecast, totals: Totals, *, steps: int, starts: Sequence[Start]) -> tuple[Compared, ...]:
    """`steps` are those of all chains. Money goes by the prices that starts told, and by the plan's where they told none."""
    of_plan, cost = plan.planned, plan.cost
    hours = device_hours(starts)
    paid = money(starts, otherwise=plan.gpu_hour_price)
    exact = [
        Compared(name=name, planned=_exactly(planned), actual=actual)
        for name, planned, actual in (
            ("rows used", of_plan.used, totals.used),
            ("rows rejected", of_plan.rejected, totals.rejected),
            ("problems", of_plan.problems, totals.problems),
            *(
                ()
                if of_plan.chains_drawn
                else (
                    ("chains", of_plan.chains, totals.chains),
                    ("steps", of_plan.steps, steps),
                    ("distinct prefixes", of_plan.prefixes, totals.prefixes - totals.too_long),
                )
            ),
        )
    ]
    return (
        *exact,
        Compared(name="rollouts", planned=cost.rollouts, actual=totals.rollouts),
        Compared(name="tokens", planned=cost.tokens, actual=totals.tokens + totals.solution_tokens),
        Compared(name="device hours", planned=cost.device_hours, actual=hours, digits=2),
        Compared(name="money", planned=cost.money, actual=paid, digits=2),
    )


def differing(plan: Forecast, identity: Mapping[str, object]) -> tuple[str, ...]:
    """Keys of what the plan was made for and the run is not the result of; empty for the plan of this run."""
    keys = sorted({*plan.identity, *identity} - {STAGED_INPUT})
    return tuple(key for key in keys if plan.identity.get(key) != identity.get(key))


def _exactly(count: int) -> Range:
    return Range(low=count, expected=count, high=count)
