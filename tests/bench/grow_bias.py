"""Whether values of promoted prefixes are biased, in the oracle's tree world, where they are known: by their own rollouts, and
by what a reader would get who counts those that had led to the promotion. No engine and no run directory: the code of trees,
pickers and rounds alone (`tests.pickers.simulated`). `python -m tests.bench.grow_bias ROLLOUTS` simulates fewer."""

import sys
import time

from pipeline.pickers.registry import picker_for
from tests.pickers.handmade import settings_for
from tests.pickers.simulated import Bins, Simulation

ROLLOUTS = 10_000_000
BINS = 20


def grow_bias(rollouts: int = ROLLOUTS) -> None:
    """Simulate `rollouts`, to the end of a problem. About 3,500 of them take a second of processor time."""
    simulation = Simulation(picker_for(settings_for("pairs")))
    own, both, passed = Bins(BINS), Bins(BINS), Bins(BINS)
    begin = time.process_time()
    number = 0
    while simulation.rollouts < rollouts:
        for each in simulation.grown(number):
            own.add(each.value, each.correct, each.graded)
            passed.add(each.value, each.passed_correct, each.passed_graded)
            both.add(each.value, each.correct + each.passed_correct, each.graded + each.passed_graded)
        number += 1
    print(
        f"\ngrow-bias: grow.pick=pairs, {number:,} problems, {simulation.rollouts:,} rollouts, {sum(own.sizes):,} promoted "
        f"prefixes, {time.process_time() - begin:.0f} s of processor time"
    )
    print("mean error of a value +- its standard error, by the exact value")
    print(f"{'value':>11} {'prefixes':>9}  {'own rollouts':>19}  {'own and passing':>19}  {'passing alone':>19}")
    columns = [list(zip(bins.means(), bins.errors(), strict=True)) for bins in (own, both, passed)]
    for at, size in enumerate(own.sizes):
        errors = "  ".join(f"{mean:+.5f} +- {error:.5f}" for mean, error in (column[at] for column in columns))
        print(f"{at / BINS:.2f} - {(at + 1) / BINS:.2f} {size:>9,}  {errors}")
    for said, bins in (("own rollouts", own), ("own and passing", both), ("passing alone", passed)):
        worst = max(map(abs, bins.scores()))
        print(f"{said}: {bins.score():+.2f} standard errors in all, at most {worst:.2f} in a bin")


if __name__ == "__main__":
    grow_bias(int(sys.argv[1]) if sys.argv[1:] else ROLLOUTS)
