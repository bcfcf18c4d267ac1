"""What is asked of the estimators, beside what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.estimators.bias import Bias
from tests.bench.estimators.cell import Cell, standard_error
from tests.bench.estimators.clock import ClockComparison
from tests.bench.estimators.cost import Cost
from tests.bench.estimators.figures import cost_at, growth
from tests.bench.estimators.saving import Saving

STANDARD = "fixed N=8"
LONG = 16
"""A chain with this number of steps or more is long."""
LONG_BARS = {"jump": 8.0, "smooth": 5.0, "independent": 0.95}
SHORT_BARS = {"jump": 3.0, "smooth": 3.0, "independent": 0.95}
SHORTEST = 8
FIXED_ERROR = 0.10
MOST_GROWTH = 0.3
LEAST_SAVING = 2.4
MOST_BIAS = 0.002
COVERAGE, COVERAGE_SLACK = 0.95, 0.01
MOST_MICROSECONDS = 10.0
LEAST_P = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One bar: what is asked, what was measured, and whether that is enough."""

    asked: str
    measured: str
    met: bool


def fewer(cell: Cell, standard: str = STANDARD) -> float | None:
    """Tokens of a standard over those of pooled at the same error. It is a lower bound where even the cheapest of pooled's
    points has a smaller error; None where none has so small a one."""
    point = cell.point(standard)
    cheapest = min(cell.curve, key=lambda ours: ours.tokens_per_step)
    ours = cheapest.tokens_per_step if cheapest.rmse <= point.rmse else cost_at(cell.curve, point.rmse)
    return None if ours is None else point.tokens_per_step / ours


def bar(cell: Cell) -> float | None:
    """What `fewer` must be at least, where anything is asked."""
    if cell.steps < SHORTEST:
        return None
    return (LONG_BARS if cell.steps >= LONG else SHORT_BARS).get(cell.family)


def rollouts_at_fixed_error(cell: Cell) -> float | None:
    return cost_at(cell.curve, FIXED_ERROR, "rollouts_per_chain")


def growth_of(cells: Sequence[Cell]) -> float | None:
    """The exponent of rollouts per chain in K, from SHORTEST steps on; None where fewer than two K reach the error."""
    costs = {cell.steps: rollouts_at_fixed_error(cell) for cell in cells if cell.steps >= SHORTEST}
    known = {steps: cost for steps, cost in costs.items() if cost is not None}
    return growth(list(known), list(known.values())) if len(known) > 1 else None


def marks(
    cells: Sequence[Cell],
    savings: Sequence[Saving],
    biases: Sequence[Bias],
    costs: Sequence[Cost],
    clock: ClockComparison,
) -> list[Mark]:
    return [
        *(_fewer_mark(cell) for cell in cells if bar(cell) is not None),
        *(_growth_mark(family, [cell for cell in cells if cell.family == family]) for family in ("jump", "smooth")),
        *(_coverage_mark(cell) for cell in cells),
        *(_saving_mark(saving) for saving in savings if saving.family in LONG_BARS),
        *(_bias_mark(bias) for bias in biases),
        Mark(
            asked="completion in any order changes no trial",
            measured=f"{clock.differ} of {clock.prefixes:,} prefixes differ, {clock.overtaken:,} rollouts were overtaken",
            met=clock.differ == 0,
        ),
        *(
            Mark(
                asked=f"decisions, {cost.family}: at most {MOST_MICROSECONDS:g} µs per rollout",
                measured=f"{cost.microseconds:.1f} µs",
                met=cost.microseconds <= MOST_MICROSECONDS,
            )
            for cost in costs
        ),
    ]


def _fewer_mark(cell: Cell) -> Mark:
    found, asked, error = fewer(cell), bar(cell), standard_error(cell, fewer)
    assert asked is not None
    return Mark(
        asked=f"{cell.family}, K={cell.steps}: at least {asked:g}x fewer tokens than {STANDARD} at its RMSE",
        measured="its RMSE is not on the curve" if found is None else f"{found:.2f}x{_give_or_take(error, '.2f')}",
        met=found is not None and found >= asked,
    )


def _give_or_take(error: float | None, form: str) -> str:
    return "" if error is None else f" +- {format(error, form)}"


def _growth_mark(family: str, cells: Sequence[Cell]) -> Mark:
    exponent = growth_of(cells)
    return Mark(
        asked=f"{family}: rollouts per chain at RMSE {FIXED_ERROR:.2f} grow no faster than K^{MOST_GROWTH:g}",
        measured="not reached" if exponent is None else f"K^{exponent:.2f}",
        met=exponent is not None and exponent <= MOST_GROWTH,
    )


def _coverage_mark(cell: Cell) -> Mark:
    shares = (cell.coverage.interval, cell.coverage.by_sd)
    errors = [
        standard_error(cell, lambda rest: rest.coverage.interval),
        standard_error(cell, lambda rest: rest.coverage.by_sd),
    ]
    return Mark(
        asked=f"{cell.family}, K={cell.steps}: {COVERAGE:.0%} +- {COVERAGE_SLACK:.0%} within low..high, and within 1.96 sd",
        measured=", ".join(
            f"{share:.1%}{_give_or_take(error, '.1%')}" for share, error in zip(shares, errors, strict=True)
        ),
        met=all(abs(share - COVERAGE) <= COVERAGE_SLACK for share in shares),
    )


def _saving_mark(saving: Saving) -> Mark:
    return Mark(
        asked=f"first_success, {saving.family}: at least {LEAST_SAVING:g}x fewer rollouts, the same labels",
        measured=f"{saving.fewer_rollouts:.2f}x, {saving.unlike} of {saving.labels:,} labels differ, p={saving.p:.2f}",
        met=saving.fewer_rollouts >= LEAST_SAVING and not saving.unlike and saving.p >= LEAST_P,
    )


def _bias_mark(bias: Bias) -> Mark:
    worst = bias.worst
    return Mark(
        asked=f"bias of value, {bias.rule}: below {MOST_BIAS:g} in every bin of V",
        measured=f"{bias.mean[worst]:+.4f} +- {bias.error[worst]:.4f} in bin {worst}",
        met=abs(bias.mean[worst]) < MOST_BIAS and max(bias.error) < MOST_BIAS / 2,
    )
