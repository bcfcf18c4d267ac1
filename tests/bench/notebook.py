"""What Python users wait for: importing the package, the first labels of three lines, and the frame of a large run's labels."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline import Run
from pipeline.__main__ import compose_label
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, Counts, Origin, StepValue, Trials
from pipeline.estimators.base import Estimator
from pipeline.estimators.tree import Tree
from pipeline.runtime.objects import given, offered
from tests.checkout import ROOT
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process

PROBLEMS, CHAINS, STEPS = 12_500, 4, 20
"""A million steps."""
IMPORTS = 9
REPEATS = 5
IMPORT_BAR, LABELS_BAR = 0.3, 2.0
"""Seconds."""
_IMPORT = "import time\nbegan = time.perf_counter()\nimport pipeline\nprint(time.perf_counter() - began)"
_THREE_LINES = (
    "from pipeline import label\n"
    'run = label([{"problem": "1 + 1?", "answer": "2", "steps": ["1 + 1 = 2.", "The answer is 2."]}], policy="oracle")\n'
    "print(run.labels())\n"
)


class Unsampled(Estimator):
    """Requests no rollout and makes values up, so that a large run directory is made quickly by the code that makes all."""

    def next_rollouts(
        self, problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, state: Any
    ) -> list[dict[str, int]]:
        return [{} for _ in problems]

    def values(self, chains: Sequence[ChainShape], trials: Mapping[str, Trials], state: Any) -> list[list[StepValue]]:
        return [[_made_up(place) for place in range(len(chain.prefix_ids))] for chain in chains]


def _made_up(place: int) -> StepValue:
    value = (37 * place % 101) / 101
    return StepValue(
        value=value, value_sd=0.1, low=value / 2, high=(1 + value) / 2, p_above=value, unbiased_value=value,
        unbiased_rollouts=8, origin=Origin.MEASURED, counts=Counts(correct=3, graded=8),
    )  # fmt: skip


def notebook() -> None:
    print(f"\nnotebook: goals: import {IMPORT_BAR} s, labels of a million steps {LABELS_BAR} s")
    imports = [float(_printed(_IMPORT)) for _ in range(IMPORTS)]
    print(f"  import pipeline: median {statistics.median(imports):.3f} s, worst {max(imports):.3f} s of {IMPORTS}")
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as name:
        began = time.perf_counter()
        _printed(_THREE_LINES, name)
        print(f"  first labels, three lines with the oracle in a new process: {time.perf_counter() - began:.1f} s")
        _large(Path(name))


def _large(folder: Path) -> None:
    data = write_rows(
        folder / "rows.jsonl", [_row(problem, chain) for problem in range(PROBLEMS) for chain in range(CHAINS)]
    )
    with offered([given("estimator", Unsampled(EstimatorConfig()))]):
        asked = [
            f"data.path={data}",
            f"run_dir={folder / 'run'}",
            "policy=oracle",
            "estimator=unsampled",
            "run.report=false",
        ]
        label_in_process(compose_label(asked))
    run = Run(folder / "run")
    seconds, processor = [], []
    for _ in range(REPEATS):
        began, cpu = time.perf_counter(), time.process_time()
        labels = run.labels()
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - cpu)
    began = time.perf_counter()
    mean = run.labels(lazy=True).select("value").explode("value").mean().collect().item()
    lazy = time.perf_counter() - began
    steps = int(labels["steps"].list.len().sum())
    print(
        f"  run.labels() of {steps:,} steps: first {seconds[0]:.2f} s, median {statistics.median(seconds):.2f} s, "
        f"{statistics.median(processor):.2f} s of processor time; a mean with lazy=True "
        f"{lazy:.2f} s ({mean:.2f}); {labels.estimated_size('mb'):.0f} MB"
    )


def _row(problem: int, chain: int) -> dict[str, object]:
    steps = [f"Way {chain}, step {step}: take {step} of the {problem} things and count." for step in range(STEPS - 1)]
    return {
        "problem": f"{problem} things?",
        "answer": str(problem),
        "steps": [*steps, f"The answer is {problem + chain % 2}."],
    }


def _printed(code: str, folder: str | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder or ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout
