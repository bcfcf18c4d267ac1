"""The pipeline against the straightforward script: what both take for the same chains, at a fixed number of rollouts and at
equal error.

The chains are those of `tests/tiny/truth.jsonl`, many times over, so that the error is measured in the very runs that are
timed. The pipeline sees copies as chains of different problems: each has a second right answer that no rollout gives.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from tests.bench.straightforward.figures import Labelled, Run, agreement, at_error, bias, error, expected_error
from tests.bench.watched import Watched, watched
from tests.conftest import ROOT, write_rows
from tests.tiny.compared import Truth, shown, truth
from tests.tiny.policy import ASSET, MAX_TOKENS, OVERRIDES, TRUTH

COPIES = 10
ROLLOUTS = 16
TARGETS = (0.09, 0.07)
"""Of `estimator.target_sd`. With outcomes drawn from the truth, ten labellings each come to 0.088 and 0.069; N=16 to 0.074."""
BATCH_PREFIXES = 32
"""Of the script: 512 completions a batch, twice as many as the engine has places."""
CPUS = 1
"""See `tests.bench.tiny.truth`."""
NEVER_ANSWERED = 1_000_000
SCRIPT = ROOT / "tests" / "bench" / "straightforward" / "script.py"


def straightforward() -> None:
    known = truth()
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as name:
        folder = Path(name)
        print(
            f"\nagainst a straightforward script (Ray Data, vLLM, Math-Verify): {COPIES} x {len(known.ids)} chains, "
            f"{COPIES * len(known.chain):,} prefixes, tiny policy, {CPUS} CPU for the engine"
        )
        print(
            f"  {'':<28}{'start s':>8}{'label s':>9}{'total s':>9}{'label CPU s':>13}{'tokens':>10}  RMSE +- standard error"
        )
        theirs = _shown(f"script, N={ROLLOUTS}", script(folder, known), known)
        ours = _shown(f"pipeline, fixed N={ROLLOUTS}", pipeline(folder, known, "estimator=fixed"), known)
        pooled = [
            _shown(
                f"pipeline, pooled sd={target:g}",
                pipeline(folder, known, "estimator=pooled", f"estimator.target_sd={target}"),
                known,
            )
            for target in TARGETS
        ]
    for line in _lines(theirs, ours, pooled, known):
        print(line)


def script(folder: Path, known: Truth) -> Run:
    chains = write_rows(folder / "chains.jsonl", [_row(row, copy) for copy in range(COPIES) for row in _rows()])
    job = {
        "chains": str(chains),
        "values": str(folder / "values"),
        "batch_size": BATCH_PREFIXES,
        "engine_cpus": CPUS,
        "answer_pattern": "#([0-9]+)",
        "environment": {
            "OMP_NUM_THREADS": f"{CPUS}",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "VLLM_CPU_KVCACHE_SPACE": "2",
            "VLLM_LOGGING_LEVEL": "ERROR",
        },
        "engine": {
            "model": str(ASSET),
            "dtype": "float32",
            "max_num_seqs": 256,
            "enforce_eager": True,
            "enable_prefix_caching": True,
            "disable_log_stats": True,
        },
        "sampling": {"n": ROLLOUTS, "temperature": 1.0, "max_tokens": MAX_TOKENS},
    }
    (folder / "job.json").write_text(json.dumps(job))
    done = watched([sys.executable, str(SCRIPT), str(folder / "job.json")])
    loaded = next(float(said.line.rpartition("LOADED ")[2]) for said in done.said if "LOADED " in said.line)
    table = pl.read_parquet(folder / "values" / "*.parquet")
    shape = (COPIES, len(known.chain))
    correct, graded, filled = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)
    first = dict(zip(known.ids, np.unique(known.chain, return_index=True)[1].tolist(), strict=True))
    for chain, step, right, rollouts in table.select("id", "step", "correct", "rollouts").rows():
        name, _, copy = chain.rpartition(" ")
        at = int(copy), first[name] + step
        correct[at], graded[at], filled[at] = right, rollouts, True
    assert filled.all()
    labelled = Labelled(value=correct / graded, correct=correct, graded=graded, tokens=int(table["tokens"].sum()))
    return _run(done, loaded, labelled)


def pipeline(folder: Path, known: Truth, *overrides: str) -> Run:
    data = write_rows(
        folder / "rows.jsonl", [_distinct(_row(row, copy), copy) for copy in range(COPIES) for row in _rows()]
    )
    run_dir = folder / "-".join(overrides).replace("=", "-")
    settings = (
        f"data.path={data}",
        f"run_dir={run_dir}",
        f"sampling.rollouts={ROLLOUTS}",
        "run.show_chains=0",
        "run.report=false",
    )
    command = [sys.executable, "-m", "pipeline", "label", *OVERRIDES, *settings, f"cluster.cpus_per_worker={CPUS}"]
    done = watched([*command, *overrides])
    table = pl.read_parquet(run_dir / "labels" / "*.parquet")
    copies = [shown(part) for part in _copies(table)]
    labelled = Labelled(
        value=np.array([each.mean for each in copies]),
        correct=np.array([each.correct for each in copies]),
        graded=np.array([each.graded for each in copies]),
        tokens=int(table["rollout_tokens"].sum()),
    )
    return _run(done, done.first("labelling").at, labelled)


def _rows() -> list[dict[str, object]]:
    return [json.loads(line) for line in TRUTH.read_text(encoding="utf-8").splitlines()]


def _row(row: dict[str, object], copy: int) -> dict[str, object]:
    return {"id": f"{row['id']} {copy}", **{name: row[name] for name in ("problem", "answer", "steps")}}


def _distinct(row: dict[str, object], copy: int) -> dict[str, object]:
    return row | {"answer": [row["answer"], f"{NEVER_ANSWERED + copy}"]}


def _copies(labels: pl.DataFrame) -> Iterator[pl.DataFrame]:
    source, copy = pl.col("source_id").str.split(" "), "copy"
    named = labels.with_columns(source.list.last().cast(pl.Int64).alias(copy), source.list.first().alias("source_id"))
    for number in range(COPIES):
        yield named.filter(pl.col(copy) == number)


def _run(done: Watched, loaded: float, labelled: Labelled) -> Run:
    return Run(
        labelled=labelled,
        starting=loaded - done.began,
        total=done.seconds,
        cpu_seconds=sum(done.between(loaded, done.ended).values()),
        left=done.left,
    )


def _shown(name: str, run: Run, known: Truth) -> Run:
    print(
        f"  {name:<28}{run.starting:>8.1f}{run.labelling:>9.1f}{run.total:>9.1f}{run.cpu_seconds:>13.1f}"
        f"{run.labelled.tokens:>10,}  {error(run.labelled, known).text('.4f')}"
    )
    return run


def _lines(theirs: Run, ours: Run, pooled: list[Run], known: Truth) -> Iterator[str]:
    wanted = expected_error(ROLLOUTS, known)
    yield f"  N={ROLLOUTS} should have an RMSE of {wanted.text('.4f')} (the standard error is over chains)"
    yield f"  at fixed N={ROLLOUTS}: {_ahead(theirs, ours.labelling, ours.total, ours.cpu_seconds)}"
    errors = [error(run.labelled, known).value for run in pooled]
    costs = [
        at_error(wanted.value, [(off, getattr(run, cost)) for off, run in zip(errors, pooled, strict=True)])
        for cost in ("labelling", "total", "cpu_seconds")
    ]
    yield f"  pooled at that error, between two targets: {_ahead(theirs, *costs)} (nan: beyond both)"
    same = agreement(theirs.labelled, ours.labelled)
    yield (
        f"  right rollouts of each prefix, script and fixed: chi-square {same.chi_square:.0f} of {same.freedom} degrees of "
        f"freedom (tail {same.tail:.2f}); mean of value - V: script {bias(theirs.labelled, known).text('.4f')}, fixed "
        f"{bias(ours.labelled, known).text('.4f')}, pooled "
        + ", ".join(bias(run.labelled, known).text(".4f") for run in pooled)
    )
    yield (
        f"  processes that had to be killed after the command's end: script {theirs.left}, pipeline "
        f"{sum(run.left for run in (ours, *pooled))}"
    )


def _ahead(theirs: Run, labelling: float, total: float, cpu_seconds: float) -> str:
    return (
        f"{theirs.labelling / labelling:.2f} times as fast as the script in labelling, {theirs.total / total:.2f} times in "
        f"all; {theirs.cpu_seconds / cpu_seconds:.2f} times less CPU while labelling"
    )
