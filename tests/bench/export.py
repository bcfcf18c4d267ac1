"""What an export costs: the labels of a run to the rows of each format, and these read back by polars and by `datasets`.

Figures are steps of the run per second of processor time, all threads together: what one core does.
"""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipeline.__main__ import compose_label
from pipeline.export.registry import EXPORTS
from pipeline.export.result import ExportResult
from pipeline.export.run import export as export_run
from pipeline.export.settings import ExportConfig, FileType, InvalidChains
from tests.runtime.in_process import label_in_process

PROBLEMS = 5_000
CHAINS = 4
STEPS = 6
SHARED = 2
"""Steps at the beginning that all chains of a problem have."""
ROLLOUTS = 2
BAR = 100_000
"""Steps per second of one core, exported and read back."""
READERS: dict[FileType, Callable[[Path], pl.DataFrame]] = {
    FileType.jsonl: pl.read_ndjson,
    FileType.json: pl.read_json,
    FileType.parquet: pl.read_parquet,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of processor time: of the export, and of each way to read its rows back."""

    exported: float
    polars: float
    datasets: float


def export() -> None:
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as name:
        folder = Path(name)
        steps = PROBLEMS * CHAINS * STEPS
        print(f"\nexport: {steps:,} steps of {PROBLEMS * CHAINS:,} chains; steps per second of one core; goal {BAR:,}")
        _label(folder)
        _measured(folder, "warm", "trl", None)
        heads = ("export", "polars", "datasets", "export + polars", "export + datasets")
        print(f"  {'format':<24}{'rows':>8}{'MB':>6}" + "".join(f"{head:>19}" for head in heads))
        asked: list[tuple[str, FileType | None]] = [(layout, None) for layout in EXPORTS.ours]
        for layout, file in [*asked, ("trl", FileType.parquet)]:
            _report(folder, layout, file)


def _report(folder: Path, layout: str, file: FileType | None) -> None:
    done, path, cost = _measured(folder, f"{layout}-{file}", layout, file)
    (counts,) = done.files.values()
    seconds = (cost.exported, cost.polars, cost.datasets, cost.exported + cost.polars, cost.exported + cost.datasets)
    speeds = "".join(f"{done.steps / each:>19,.0f}" for each in seconds)
    label = f"{layout} ({path.suffix.removeprefix('.')})"
    print(f"  {label:<24}{counts.rows:>8,}{path.stat().st_size / 1e6:>6.0f}{speeds}", flush=True)


def _measured(folder: Path, name: str, layout: str, file: FileType | None) -> tuple[ExportResult, Path, Cost]:
    import datasets

    datasets.disable_progress_bars()
    out = folder / name
    config = ExportConfig(
        run_dir=str(folder / "run"),
        format=layout,
        out=str(out),
        file=file,
        invalid=InvalidChains.drop,
    )
    began = time.process_time()
    done = export_run(config)
    exported = time.process_time()
    (path,) = (out / written for written in done.files)
    READERS[FileType(path.suffix.removeprefix("."))](path)
    polars = time.process_time()
    kind = "parquet" if path.suffix == ".parquet" else "json"
    datasets.load_dataset(kind, data_files=str(path), split="train", cache_dir=str(folder / "cache" / name))
    loaded = time.process_time()
    return done, path, Cost(exported=exported - began, polars=polars - exported, datasets=loaded - polars)


def _label(folder: Path) -> None:
    """A run on `PROBLEMS` problems, labelled by the oracle."""
    data = folder / "rows.jsonl"
    with data.open("w", encoding="utf-8") as file:
        for problem in range(PROBLEMS):
            for chain in range(CHAINS):
                file.write(json.dumps(_row(problem, chain)) + "\n")
    settings = ["policy=oracle", "estimator=fixed", f"sampling.rollouts={ROLLOUTS}", "run.show_chains=0"]
    label_in_process(compose_label([f"data.path={data}", f"run_dir={folder / 'run'}", *settings]))


def _row(problem: int, chain: int) -> dict[str, object]:
    answer = problem + chain % 2
    middle = [f"Way {chain}, step {step}: we add {step} to {problem} and keep what is left." for step in range(STEPS)]
    first = [f"Step {step} reads that there are {problem} things in {step} boxes." for step in range(SHARED)]
    return {
        "id": f"{problem}-{chain}",
        "problem": f"A shop has {problem} things in boxes, takes some of them out and puts them back. How many has it then?",
        "answer": str(problem),
        "steps": [*first, *middle[SHARED : STEPS - 1], f"The answer is {answer}."],
    }
