"""`python -m tests.bench.estimators [FOLDER]`: tokens per labelled step against the error of step values, with known truth.

Prints the figures and writes them to FOLDER (default runs/bench-estimators): figures.txt, points.csv, points.svg.
"""

import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.bench.estimators import render
from tests.bench.estimators.bars import marks
from tests.bench.estimators.bias import PARTS, biases, together
from tests.bench.estimators.cell import CEILING, USUAL_TARGET, measure, pooled
from tests.bench.estimators.clock import compared
from tests.bench.estimators.cost import cost
from tests.bench.estimators.families import FAMILIES, STEPS
from tests.bench.estimators.hard import CHAINS as HARD_STEPS
from tests.bench.estimators.hard import hard_labels, hard_table
from tests.bench.estimators.saving import saving
from tests.bench.estimators.students import students, students_table
from tests.bench.estimators.trees import SETTINGS as TREES
from tests.bench.estimators.trees import trees, trees_table

FOLDER = Path("runs/bench-estimators")
PROCESSES = 2
SHOWN_STEPS = 16


def main() -> int:
    if len(sys.argv) > 2:
        print("usage: python -m tests.bench.estimators [FOLDER]", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1]) if len(sys.argv) == 2 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    # Alone on the machine, before the others begin.
    costs = [cost(family) for family in ("jump", "smooth")]
    with ProcessPoolExecutor(PROCESSES) as pool:
        longest_first = sorted(((family, steps) for family in FAMILIES for steps in STEPS), key=lambda job: -job[1])
        biases_under_way = [pool.submit(biases, part) for part in range(PARTS)]
        cells_under_way = {job: pool.submit(measure, *job) for job in longest_first}
        hard_under_way = [pool.submit(hard_labels, family, steps) for family in FAMILIES for steps in HARD_STEPS]
        students_under_way = [pool.submit(students, family) for family in FAMILIES]
        trees_under_way = [pool.submit(trees, *setting) for setting in TREES]
        savings_under_way = [pool.submit(saving, family) for family in FAMILIES]
        clock_under_way = pool.submit(compared, pooled(USUAL_TARGET), rollouts=CEILING)
        found_biases = together([job.result() for job in biases_under_way])
        cells = [cells_under_way[family, steps].result() for family in FAMILIES for steps in STEPS]
        savings = [job.result() for job in savings_under_way]
        clock = clock_under_way.result()
        hard = [each for job in hard_under_way for each in job.result()]
        found_trees = [job.result() for job in trees_under_way]
        trained = [each for job in students_under_way for each in job.result()]
    held = [bias for bias in found_biases if not bias.contrast]
    parts = (
        [f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"],
        render.table(cells),
        render.peers_table(cells, SHOWN_STEPS),
        hard_table(hard),
        students_table(trained),
        trees_table(found_trees),
        render.savings_table(savings),
        render.bias_table(found_biases),
        render.bars_table(marks(cells, savings, held, costs, clock)),
        [f"{time.monotonic() - began:.0f} s; {folder}/figures.txt, points.csv, points.svg"],
    )
    text = "\n\n".join("\n".join(part) for part in parts)
    print(text)
    (folder / "figures.txt").write_text(text + "\n")
    (folder / "points.csv").write_text(render.points_csv(cells))
    (folder / "points.svg").write_text(render.picture(cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
