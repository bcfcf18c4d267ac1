"""What it takes to plan a growth of a large run: to read all of its rollouts, join them to trees, and ask the picker.

The run is one of the oracle's tree world, whose texts are short; making it takes minutes. What is timed is the user's command,
`grow ... --estimate`, which begins a growth and writes nothing.
"""

import resource
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from pipeline.__main__ import compose_label
from pipeline.storage.local import LocalStorage
from pipeline.storage.stored_run import stored_run
from tests.bench.grow_idle import TREE
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process
from tests.searches.runs import sums

PROBLEMS = 8_300
"""A problem has about 121 rollouts: 3 chains, 8 rollouts of each prefix."""
LOOK_SECONDS = 0.2
"""Between two looks at the memory."""


def harvest_scale(problems: int = PROBLEMS) -> None:
    with tempfile.TemporaryDirectory(prefix="stepvalue-harvest-") as folder:
        rows = write_rows(Path(folder) / "rows.jsonl", sums(problems))
        run_dir = Path(folder) / "run"
        asked = ("policy=oracle", "estimator=fixed", "sampling.solutions=3", "sampling.store_tokens=true", *TREE)
        began = time.monotonic()
        label_in_process(compose_label([*asked, f"data.path={rows}", f"run_dir={run_dir}"]))
        making = time.monotonic() - began
        rollouts = sum(whole.totals.rollouts for whole in stored_run(LocalStorage(run_dir)).wholes.values())
        grow = ("grow", f"run_dir={run_dir}", "grow.budget_unit=rollouts", f"grow.budget={rollouts}", "--estimate")
        began = time.monotonic()
        said, memory = _said_and_memory([sys.executable, "-m", "pipeline", *grow])
        seconds = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\nharvest-scale: {rollouts:,} rollouts of {problems:,} problems, made in {making:.0f} s")
    print(said.rstrip())
    print(
        f"{seconds:.0f} s with the start of Python, {used.ru_utime + used.ru_stime:.0f} s of processor time, wanted <= 60; "
        f"memory of all its processes {memory / 2**20:,.0f} MB at most, wanted <= 1,000"
    )


def _said_and_memory(command: list[str]) -> tuple[str, int]:
    """What a command prints, and the most memory that it and its children had at once, in bytes. Shared pages count in each."""
    most = 0
    with tempfile.TemporaryFile("w+") as said:
        with psutil.Popen(command, stdout=said) as process:
            while process.poll() is None:
                with suppress(psutil.NoSuchProcess):
                    alive = [process, *process.children(recursive=True)]
                    most = max(most, sum(each.memory_info().rss for each in alive))
                time.sleep(LOOK_SECONDS)
        if process.returncode:
            raise RuntimeError(f"{command} ended with {process.returncode}")
        said.seek(0)
        return said.read(), most
