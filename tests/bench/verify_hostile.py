"""`check` on a hundred thousand hostile steps: what it executes, what gets stuck and what it leaves behind."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import polars as pl
import psutil

from pipeline.verifiers.registry import VERIFIERS
from tests.conftest import ROOT
from tests.verifiers.hostile_chains import STEPS, hostile_chains
from tests.verifiers.z3_hostile import FILE

WANTED = 100_000
COUNT_VARIABLE = "STEPVALUE_BENCH_HOSTILE"
SEED = 28
DEADLINE_SECONDS = 3600
NAMES = ("arithmetic", "algebra", "z3", "facts")
_GRACE_SECONDS = 5.0


def verify_hostile() -> None:
    """Check them, or as many as the environment says, with the command."""
    wanted = int(os.environ.get(COUNT_VARIABLE, WANTED))
    names = [name for name in NAMES if name in VERIFIERS.names()]
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        work, temporary = Path(folder, "work"), Path(folder, "tmp")
        work.mkdir()
        temporary.mkdir()
        rows = Path(folder, "rows.jsonl")
        with rows.open("w") as file:
            for number, chain in enumerate(hostile_chains(wanted // STEPS, SEED)):
                row = {"problem": f"{chain.problem}\n; {number}", "steps": chain.steps, "id": str(number)}
                file.write(json.dumps(row) + "\n")
        began = time.monotonic()
        command = ["check", f"data.path={rows}", f"run_dir={folder}/found", f"checks=[{','.join(names)}]"]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pipeline", *command],
            cwd=work,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
        )
        seconds = time.monotonic() - began
        time.sleep(_GRACE_SECONDS)
        print(
            f"\nverify-hostile: {wanted:,} hostile steps through `check` by {', '.join(names)}, exit code {done.returncode}"
        )
        if done.returncode or "left out" in done.stdout:
            print(done.stdout[-2_000:], done.stderr[-2_000:])
        for name in names:
            _print_findings(name, Path(folder, "found", "checks", name, "findings"))
        print(f"  {seconds:,.0f} s in all, {wanted * len(names) / seconds:,.0f} verdicts/s")
        print(f"  files in the working folder: {len(list(work.rglob('*')))}, wanted 0 (a step would write {FILE})")
        print(f"  processes that work below the folder: {len(_processes(folder))}, wanted 0")


def _print_findings(name: str, folder: Path) -> None:
    found = pl.read_parquet(folder / "*.parquet", columns=["verdict", "fault"]).cast(pl.String)
    verdicts = Counter(found["verdict"].to_list())
    faults = Counter(found["fault"].drop_nulls().to_list())
    print(
        f"  {name:<12}{found.height:>8,} steps: {verdicts['refuted']:>6,} refuted, {verdicts['holds']:>6,} hold, "
        f"{verdicts['unknown']:>7,} unknown" + (f", of which {dict(sorted(faults.items()))}" if faults else "")
    )


def _processes(folder: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cwd", "cmdline"]):
        line = " ".join([process.info["cwd"] or "", *(process.info["cmdline"] or [])])
        if folder in line:
            found.append(process)
    return found
