"""Whether values of promoted prefixes are biased, in the oracle's tree world, where they are known: by their own rollouts, and
by what a reader would get who counts those that had led to the promotion. No engine and no run directory: the code of trees,
pickers and rounds alone (`tests.pickers.simulated`). `python -m tests.bench.grow_bias ROLLOUTS` simulates fewer, and
`python -m tests.bench.grow_bias PICKER` labels and grows a run of `pooled` and prints the bias of its values."""

import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from pipeline.engines.oracle import TOKENS_PER_STEP
from pipeline.engines.oracle_tree import Shape, Tree
from pipeline.pickers.registry import picker_for
from tests.pickers.handmade import settings_for
from tests.pickers.simulated import Bins, Simulation
from tests.runtime.growing import bare, labels
from tests.runtime.grown import grow_here, labelled

ROLLOUTS = 10_000_000
BINS = 20
PROBLEMS = 1_000
"""That a process simulates at a time."""


class Read(NamedTuple):
    """What some problems came to. Errors by the exact value: of the value by a prefix's own rollouts, by these and those that
    had passed through it when it was promoted, and by the latter alone."""

    rollouts: int
    seconds: float
    own: Bins
    both: Bins
    passed: Bins


def grow_bias(rollouts: int = ROLLOUTS) -> None:
    """Simulate at least `rollouts`, on all cores."""
    cores = os.cpu_count() or 1
    whole = Read(0, 0.0, Bins(BINS), Bins(BINS), Bins(BINS))
    problems = 0
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as processes:
        while whole.rollouts < rollouts:
            for found in processes.map(simulated, range(problems, problems + cores * PROBLEMS, PROBLEMS)):
                for bins, more in zip(whole[2:], found[2:], strict=True):
                    bins.merge(more)
                whole = whole._replace(rollouts=whole.rollouts + found.rollouts, seconds=whole.seconds + found.seconds)
            problems += cores * PROBLEMS
    own = whole.own
    print(
        f"\ngrow-bias: grow.pick=pairs, {problems:,} problems, {whole.rollouts:,} rollouts, {sum(own.sizes):,} "
        f"promoted prefixes, {whole.seconds:.0f} s of processor time"
    )
    print("mean error of a value +- its standard error, by the exact value")
    print(f"{'value':>11} {'prefixes':>9}  {'own rollouts':>19}  {'own and passing':>19}  {'passing alone':>19}")
    columns = [list(zip(bins.means(), bins.errors(), strict=True)) for bins in whole[2:]]
    for at, size in enumerate(own.sizes):
        errors = "  ".join(f"{mean:+.5f} +- {error:.5f}" for mean, error in (column[at] for column in columns))
        print(f"{at / BINS:.2f} - {(at + 1) / BINS:.2f} {size:>9,}  {errors}")
    for said, bins in zip(("own rollouts", "own and passing", "passing alone"), whole[2:], strict=True):
        worst = max(map(abs, bins.scores()))
        print(
            f"{said}: mean error {bins.mean():+.6f}, {bins.score():+.2f} standard errors in all, at most {worst:.2f} in a bin"
        )


def simulated(first: int) -> Read:
    simulation = Simulation(picker_for(settings_for("pairs")))
    own, both, passed = Bins(BINS), Bins(BINS), Bins(BINS)
    begin = time.process_time()
    for number in range(first, first + PROBLEMS):
        for each in simulation.grown(number):
            own.add(each.value, each.correct, each.graded)
            passed.add(each.value, each.passed_correct, each.passed_graded)
            both.add(each.value, each.correct + each.passed_correct, each.graded + each.passed_graded)
    return Read(simulation.rollouts, time.process_time() - begin, own, both, passed)


def pooled_bias(pick: str, problems: int = 2_000) -> None:
    """Label and grow a run of `pooled` without Ray. Standard errors are of problems, whose values are not independent."""
    tree = Tree(0, Shape(spread=1.0, branching=5), TOKENS_PER_STEP)
    errors: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder)
        labelled(run, "estimator=pooled", "run.unit_problems=50", rows=bare(*range(1, problems + 1)))
        grow_here(run, f"grow.budget={16 * problems}", f"grow={pick}")
        for row in labels(run).iter_rows(named=True):
            problem, whose = row["problem_id"], "promoted" if row["grown"] else "own"
            places = zip(
                tree.paths_of(problem, row["steps"]), row["prefix_ids"], row["value"], row["origin"], strict=True
            )
            for number, (path, prefix_id, value, origin) in enumerate(places, start=1):
                last = row["grown"] and number == len(row["steps"])
                for kind in ("all", origin, *(["promoted step"] if last else [])) if origin != "terminal" else ():
                    of_kind = errors.setdefault(f"{whose} chains, {kind}", {}).setdefault(problem, {})
                    of_kind[prefix_id] = value - tree.value(problem, path)
    print(f"\ngrow-bias of pooled: grow={pick}, {problems:,} problems; mean error of a value +- its standard error")
    for kind, of_problems in sorted(errors.items()):
        sums, sizes = [sum(each.values()) for each in of_problems.values()], [*map(len, of_problems.values())]
        mean = sum(sums) / sum(sizes)
        spread = sum((one - mean * size) ** 2 for one, size in zip(sums, sizes, strict=True)) ** 0.5 / sum(sizes)
        print(f"{kind:<32} {sum(sizes):>7,} {mean:+.4f} +- {spread:.4f}")


if __name__ == "__main__":
    if sys.argv[1:] and not sys.argv[1].isdigit():
        pooled_bias(sys.argv[1])
    else:
        grow_bias(int(sys.argv[1]) if sys.argv[1:] else ROLLOUTS)
