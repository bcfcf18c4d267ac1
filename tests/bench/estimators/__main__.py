"""`python -m tests.bench.estimators`: tokens per labelled step against the error of step values, with known truth."""

import os
import platform
import time
from concurrent.futures import ProcessPoolExecutor

from tests.bench.estimators import render
from tests.bench.estimators.bias import PARTS, biases, together
from tests.bench.estimators.cell import CEILING, SEED, USUAL_TARGET, measure, pooled
from tests.bench.estimators.hard import CHAINS as HARD_STEPS
from tests.bench.estimators.hard import hard_labels, hard_table
from tests.bench.estimators.saving import saving
from tests.bench.estimators.students import students, students_table
from tests.synthetic.chains import chains_of
from tests.synthetic.families import FAMILIES, STEPS
from tests.synthetic.replayed import replay
from tests.synthetic.rollouts import Rollouts

PROCESSES = 2
SHOWN_STEPS = 16
UNIT = 128


def main() -> None:
    began = time.monotonic()
    # Alone on the machine, before the others begin.
    costs = {family: microseconds(family) for family in ("jump", "smooth")}
    with ProcessPoolExecutor(PROCESSES) as pool:
        longest_first = sorted(((family, steps) for family in FAMILIES for steps in STEPS), key=lambda job: -job[1])
        biases_under_way = [pool.submit(biases, part) for part in range(PARTS)]
        cells_under_way = {job: pool.submit(measure, *job) for job in longest_first}
        hard_under_way = [pool.submit(hard_labels, family, steps) for family in FAMILIES for steps in HARD_STEPS]
        students_under_way = [pool.submit(students, family) for family in FAMILIES]
        savings_under_way = [pool.submit(saving, family) for family in FAMILIES]
        cells = [cells_under_way[family, steps].result() for family in FAMILIES for steps in STEPS]
        parts = (
            [f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"],
            render.table(cells),
            render.peers_table(cells, SHOWN_STEPS),
            hard_table([each for job in hard_under_way for each in job.result()]),
            students_table([each for job in students_under_way for each in job.result()]),
            render.savings_table([job.result() for job in savings_under_way]),
            render.bias_table(together([job.result() for job in biases_under_way])),
            [f"decisions, {family}: {cost:.1f} µs per rollout" for family, cost in costs.items()],
            [f"{time.monotonic() - began:.0f} s"],
        )
        print("\n\n".join("\n".join(part) for part in parts))


def microseconds(family_name: str) -> float:
    """What a decision costs: CPU time of `next_rollouts` per rollout that it asks for."""
    family = FAMILIES[family_name](SHOWN_STEPS)
    chains = chains_of(family, 8 * UNIT, SEED)
    said = replay(chains, Rollouts(family, chains, SEED), pooled(USUAL_TARGET), rollouts=CEILING, unit=UNIT)
    return said.decision_seconds / int(said.rollouts.sum()) * 1e6


if __name__ == "__main__":
    main()
