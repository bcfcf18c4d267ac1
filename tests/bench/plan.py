"""How often a plan's range holds what the run then costs: oracle runs with different seeds, inputs and pilots."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.forecast import Range
from pipeline.estimators.registry import ESTIMATORS
from tests.plan.planning import labelled, planned, problems

SEEDS = 20
PROBLEMS = (60, 100, 500)
BAR = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run took beside what was expected, and how long the plan took."""

    actual: int
    expected: Range
    plan_seconds: float


def plan() -> None:
    print(f"\nplan: tokens of oracle runs, {SEEDS} seeds each; goal {BAR:.0%} within the planned range")
    print(f"  {'estimator':<16}{'problems':>9}{'within':>8}{'actual / expected':>20}{'range':>14}{'plan s':>8}")
    for name in ESTIMATORS.ours:
        for count in PROBLEMS:
            _report(name, count, [_played(name, count, seed) for seed in range(SEEDS)])


def _played(estimator: str, count: int, seed: int) -> Outcome:
    settings = [f"estimator={estimator}", f"policy.oracle.seed={seed}", f"plan.seed={seed}"]
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        began = time.perf_counter()
        forecast = planned(Path(folder), problems(count, seed=seed), *settings)
        seconds = time.perf_counter() - began
        totals = labelled(Path(folder), *settings).totals
    return Outcome(actual=totals.tokens, expected=forecast.cost.tokens, plan_seconds=seconds)


def _report(estimator: str, count: int, outcomes: list[Outcome]) -> None:
    within = sum(outcome.actual in outcome.expected for outcome in outcomes)
    ratios = sorted(outcome.actual / outcome.expected.expected for outcome in outcomes)
    low = sum(outcome.expected.low / outcome.expected.expected for outcome in outcomes) / len(outcomes)
    high = sum(outcome.expected.high / outcome.expected.expected for outcome in outcomes) / len(outcomes)
    seconds = sum(outcome.plan_seconds for outcome in outcomes) / len(outcomes)
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    print(
        f"  {estimator:<16}{count:>9}{within:>5}/{len(outcomes)}{spread:>20}{f'{low:.2f} to {high:.2f}':>14}{seconds:>8.1f}"
    )
