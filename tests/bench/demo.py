"""The demo: how long it takes, and whether its values see the planted errors."""

import json
import tempfile
import time
from statistics import mean

import polars as pl

from tests.conftest import ROOT, run_stepvalue

LIMIT = 24
SAMPLE_FILE = ROOT / "pipeline" / "data" / "sample.jsonl"


def demo() -> None:
    print(f"\ndemo: the embedded model on the first {LIMIT} chains of the sample")
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        began = time.monotonic()
        done = run_stepvalue(
            ["label", "data=sample", f"data.limit={LIMIT}", f"run_dir={folder}/run", "run.show_chains=0"], timeout=1200
        )
        seconds = time.monotonic() - began
        if done.returncode:
            raise SystemExit(done.stderr)
        print(
            "".join(
                f"  {line}\n" for line in done.stdout.splitlines() if line.startswith(("rollouts", "tokens", "time"))
            ),
            end="",
        )
        print(f"  {seconds:.0f} s from command to prompt, engine start included")
        _sense_check(pl.read_parquet(f"{folder}/run/labels/*.parquet"))


def _sense_check(labels: pl.DataFrame) -> None:
    """Values of sampled prefixes at and after the planted error, beside those of the same steps in the right chain."""
    values = {row["source_id"]: row for row in labels.iter_rows(named=True)}
    right, wrong = [], []
    for line in SAMPLE_FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["first_error"] is None or row["id"] not in values:
            continue
        chain, twin = values[row["id"]], values[row["id"].replace("wrong", "right")]
        for step in range(row["first_error"], min(len(chain["value"]), len(twin["value"]))):
            if chain["origin"][step] == twin["origin"][step] == "measured":
                wrong.append(chain["value"][step])
                right.append(twin["value"][step])
    print(
        f"  mean value after the planted error {mean(wrong):.3f}, of the same steps in the right chain {mean(right):.3f}"
    )
    print(f"  ({len(wrong)} sampled prefixes each; mean value of the bare problems {mean(labels['root_value']):.3f})")
