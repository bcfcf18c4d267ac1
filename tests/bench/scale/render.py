"""The figures as tables."""

from collections.abc import Iterator, Sequence

from tests.bench.scale.cost import EFFICIENCY, Pieces
from tests.bench.scale.run import CAPACITY, Played


def idle_table(played: Sequence[tuple[str, Played]]) -> Iterator[str]:
    """One line per run: estimator, what became of it."""
    yield f"idle engines: virtual H100s of {CAPACITY} places with a policy of 7B; all else is real"
    yield (
        f"  {'estimator':<9} {'workers':>7} {'seconds':>8} {'rollouts':>9} {'tokens/step':>11} {'idle':>6} "
        f"{'tail':>6} {'tail s':>7} {'prefill':>8} {'of it least':>11} {'units':>6} {'µs CPU':>7}"
    )
    for estimator, run in played:
        totals = run.summary.totals
        yield (
            f"  {estimator:<9} {run.workers:>7} {run.seconds:>8.1f} {totals.rollouts:>9,} "
            f"{totals.tokens / run.steps:>11.0f} {run.idle:>6.2%} {run.tail:>6.2%} {run.tail * run.seconds:>7.1f} "
            f"{run.work.prefilled / run.unique_tokens:>8.2f} {run.least_prefilled / run.work.prefilled:>11.2f} "
            f"{run.units_in_flight:>6} {run.cpu_seconds / totals.rollouts * 1e6:>7.0f}"
        )
    yield "  idle: places that stood empty while nothing waited, tail: of that behind the last moment when all were taken"
    yield "  prefill: prompt tokens computed over distinct ones; of it least: blocks of 16 allow no less"
    yield "  units: most in flight per worker; µs CPU: per rollout, worker, driver and virtual engine together"


def cost_table(pieces: Sequence[Pieces], price: float) -> Iterator[str]:
    yield f"a million labelled steps, at {price:g} per GPU hour"
    yield (
        f"  {'policy':<13} {'estimator':<42} {'tokens/step':>11} {'bound, tokens/s':>15} {'efficiency':>10} {'idle':>6} "
        f"{'GPU hours':>9} {'cost':>8} {'CPU hours':>9}"
    )
    for each in pieces:
        yield (
            f"  {each.pace.name:<13} {each.name:<42} {each.generated:>11,.0f} {each.bound:>15,.0f} "
            f"{EFFICIENCY[each.pace.name]:>10.2f} {each.idle:>6.2%} {each.gpu_hours:>9.2f} {each.gpu_hours * price:>8.2f} "
            f"{each.cpu_hours:>9.1f}"
        )
