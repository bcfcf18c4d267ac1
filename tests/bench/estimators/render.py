"""The bench's figures as text."""

from collections.abc import Iterable, Iterator, Sequence

from tests.bench.estimators.bias import BINS, Bias
from tests.bench.estimators.cell import (
    FIXED_ERROR,
    STANDARD,
    USUAL_TARGET,
    Cell,
    cost_at,
    fewer,
    growth_of,
    standard_error,
)
from tests.bench.estimators.saving import Saving


def table(cells: Sequence[Cell]) -> Iterator[str]:
    yield f"tokens per labelled step at the RMSE of {STANDARD}, and rollouts per chain at RMSE {FIXED_ERROR:.2f}"
    yield f"  {STANDARD:>31} {'pooled at its RMSE':>18}{'than shrunk':>16}{'rollouts':>15}{'pooled at target_sd 0.1':>46}"
    yield (
        f"  {'family':<12}{'K':>3}{'tok/step':>10}{'RMSE':>7}{'tok/step':>11}{'fewer':>7}{'+-':>6}"
        f"{'N=8':>9}{'pooled':>8}{'fixed':>8}{'RMSE':>8}{'95 %':>7}{'by sd':>7}{'68 %':>7}{'err/sd':>8}{'sampled':>9}"
    )
    for cell in cells:
        yield _row(cell)
    for family in dict.fromkeys(cell.family for cell in cells):
        exponent = growth_of([cell for cell in cells if cell.family == family])
        if exponent is not None:
            yield f"  {family}: rollouts per chain at RMSE {FIXED_ERROR:.2f} grow as K^{exponent:.2f}"


def _row(cell: Cell) -> str:
    standard = cell.point(STANDARD)
    said = cell.coverage
    fixed = [point for point in cell.points if point.method == "fixed"]
    usual, ours = cell.point(f"pooled sd={USUAL_TARGET:g}"), cost_at(cell.curve, FIXED_ERROR, "rollouts_per_chain")
    return (
        f"  {cell.family:<12}{cell.steps:>3}{standard.tokens_per_step:>10,.0f}{standard.rmse:>7.3f}"
        f"{_number(cost_at(cell.curve, standard.rmse), ',.0f'):>11}{_number(fewer(cell), '.2f'):>7}"
        f"{_number(standard_error(cell, fewer), '.2f'):>6}"
        f"{_number(fewer(cell, 'shrunk N=8'), '.2f'):>9}{_number(ours, '.1f'):>8}"
        f"{_number(cost_at(fixed, FIXED_ERROR, 'rollouts_per_chain'), '.1f'):>8}"
        f"{usual.rmse:>8.3f}{100 * said.interval:>7.1f}{100 * said.by_sd:>7.1f}{100 * said.one_sd:>7.1f}"
        f"{said.error_over_claim:>8.2f}{usual.valued:>9.0%}"
    )


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def peers_table(cells: Sequence[Cell], steps: int) -> Iterator[str]:
    """What every method reaches on chains of `steps` steps."""
    yield f"all methods, K={steps}: tokens per labelled step, RMSE, share of prefixes sampled"
    chosen = [cell for cell in cells if cell.steps == steps]
    yield f"  {'':<16}" + "".join(f"{cell.family:>22}" for cell in chosen)
    for name in (point.name for point in chosen[0].points):
        points = [cell.point(name) for cell in chosen]
        yield f"  {name:<16}" + "".join(
            f"{point.tokens_per_step:>10,.0f}{point.rmse:>7.3f}{point.valued:>5.0%}" for point in points
        )


def savings_table(savings: Iterable[Saving]) -> Iterator[str]:
    yield "first_success against fixed N=8, K=16"
    for saving in savings:
        yield (
            f"  {saving.family:<12}{saving.fewer_rollouts:>6.2f}x fewer rollouts {saving.fewer_tokens:>6.2f}x fewer tokens,"
            f" {saving.unlike} of {saving.labels:,} labels differ"
        )


def bias_table(biases: Iterable[Bias]) -> Iterator[str]:
    yield "bias of value x 1000 by bin of V, standard errors below; wrong answers take twice as long"
    yield f"  {'':<36}" + "".join(f"{f'{place / BINS:.1f}..':>8}" for place in range(BINS)) + f"{'prefixes':>12}"
    for bias in biases:
        yield (
            f"  {bias.rule:<36}"
            + "".join(f"{1000 * mean:>+8.2f}" for mean in bias.mean)
            + f"{min(bias.prefixes):>10,}+"
        )
        yield f"  {'':<36}" + "".join(f"{1000 * error:>8.2f}" for error in bias.error)
