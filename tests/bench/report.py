"""What the page of a run costs: seconds to read the run and to write the page, and its size."""

import tempfile
import time
from pathlib import Path

from pipeline.__main__ import compose_label
from pipeline.analysis.report.run import page_data
from pipeline.analysis.report.run_report import read_run
from pipeline.analysis.settings import ReportConfig
from pipeline.storage.local import LocalStorage
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process

PROBLEMS = 2_500
CHAINS = 4
STEPS = 6
ROLLOUTS = 4
SECONDS_BAR = 20
MB_BAR = 15


def report() -> None:
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as name:
        folder = Path(name)
        print(
            f"\nreport: {PROBLEMS * CHAINS:,} chains of {STEPS} steps, {ROLLOUTS} rollouts a prefix; goals: "
            f"{SECONDS_BAR} s, {MB_BAR} MB"
        )
        rows = [_row(problem, chain) for problem in range(PROBLEMS) for chain in range(CHAINS)]
        data = write_rows(folder / "rows.jsonl", rows)
        settings = ["policy=oracle", "estimator=fixed", f"sampling.rollouts={ROLLOUTS}"]
        label_in_process(compose_label([f"data.path={data}", f"run_dir={folder / 'run'}", *settings]))
        _report(folder / "run")


def _report(run_dir: Path) -> None:
    storage = LocalStorage(run_dir)
    began, cpu = time.perf_counter(), time.process_time()
    read = read_run(storage, None)
    short = read.short
    shown = time.perf_counter()
    page = page_data(storage, read, ReportConfig(run_dir=str(run_dir)))
    storage.replace("report.html", page)
    done, spent = time.perf_counter(), time.process_time() - cpu
    print("\n".join(f"  {line}" for line in short))
    print(
        f"  short form {shown - began:.1f} s, page {done - shown:.1f} s more; {spent:.1f} s of CPU in all; "
        f"{len(page) / 1e6:.1f} MB"
    )


def _row(problem: int, chain: int) -> dict[str, object]:
    """A chain of about 500 characters."""
    answer = problem + chain % 2
    steps = [
        f"Way {chain}, step {step}: we take {step} of the {problem} things out of their boxes and count what is left."
        for step in range(STEPS - 1)
    ]
    return {
        "id": f"{problem}-{chain}",
        "problem": f"A shop has {problem} things in boxes, takes some of them out and puts them back. How many has it then?",
        "answer": str(problem),
        "steps": [*steps, f"The answer is {answer}."],
    }
