"""What it takes to plan a growth of a large run: to read all of its rollouts, join them to trees, and ask the picker.

The run is one of the oracle's tree world. Its units are read again and again, as if each of them were another one, until a
million rollouts have been read; so the files are in the machine's memory, and the texts are short.
"""

import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pipeline.__main__ import compose_label
from pipeline.config.choices import BudgetUnit
from pipeline.pickers.settings import PairsConfig
from pipeline.runtime.grow import harvested
from pipeline.storage.local import LocalStorage
from pipeline.storage.stored_run import stored_run
from tests.bench.grow_idle import TREE
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process
from tests.searches.runs import sums

ROLLOUTS = 1_000_000
PROBLEMS = 200


def harvest_scale(rollouts: int = ROLLOUTS) -> None:
    with tempfile.TemporaryDirectory(prefix="stepvalue-harvest-") as folder:
        rows = write_rows(Path(folder) / "rows.jsonl", sums(PROBLEMS))
        run_dir = Path(folder) / "run"
        asked = ("policy=oracle", "estimator=fixed", "sampling.solutions=3", "sampling.store_tokens=true", *TREE)
        label_in_process(compose_label([*asked, f"data.path={rows}", f"run_dir={run_dir}"]))
        storage = LocalStorage(run_dir)
        run = stored_run(storage)
        one = sum(whole.totals.rollouts for whole in run.wholes.values())
        many = replace(run, units=run.units * -(-rollouts // one))
        before = _megabytes()
        began, processor = time.monotonic(), time.process_time()
        settings = PairsConfig(budget=rollouts, budget_unit=BudgetUnit.rollouts)
        found, allotments = harvested(storage, many, settings, rollouts)
        seconds, processor = time.monotonic() - began, time.process_time() - processor
    print(
        f"\nharvest-scale: {found.rollouts:,} rollouts in {seconds:.0f} s ({processor:.0f} s of processor time), "
        f"{found.nodes:,} prefixes, {found.candidates:,} candidates, {len(allotments):,} problems with a budget; wanted <= 60 s"
    )
    print(f"memory: {_megabytes():,.0f} MB at most, {before:,.0f} before it; wanted <= 1,000")


def _megabytes() -> float:
    """The most memory that this process has used so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
