"""What a run costs that is grown by a tenth: rollouts, tokens and time, beside the run that it continues."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pipeline.__main__ import compose_label
from pipeline.analysis.status import run_status
from pipeline.data.rows import input_digest
from pipeline.graders.registry import checker_for
from pipeline.runtime.growth import grow
from pipeline.runtime.intake import stage
from pipeline.runtime.state import identity
from pipeline.storage.commits import INPUT, Commit, CommitState
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import STAGED_INPUT
from tests.bench.control import write_chains
from tests.conftest import run_stepvalue

CHAINS = 2_000
FEW = 40
TOKENS_PER_SECOND = 60_000
STAGED = 100_000
"""Rows of the input whose reading is measured alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one start: its wall time in seconds, and what it added to the log."""

    seconds: float
    rollouts: int
    tokens: int


def growth() -> None:
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        _a_tenth_more(Path(folder))
        _reading(Path(folder))


def _a_tenth_more(folder: Path) -> None:
    print(f"\ngrowth: {CHAINS:,} chains on the oracle at {TOKENS_PER_SECOND:,} tokens/s, then a tenth more")
    start = _started(folder, "few", FEW)
    first = _started(folder, "run", CHAINS)
    grown = _started(folder, "run", CHAINS + CHAINS // 10)
    nothing = _started(folder, "run", CHAINS + CHAINS // 10)
    for name, cost in (
        (f"{FEW} chains alone: a start", start),
        ("the first start", first),
        ("a tenth more", grown),
        ("nothing new", nothing),
    ):
        print(f"  {name:<26} {cost.rollouts:>9,} rollouts {cost.tokens:>11,} tokens {cost.seconds:>7.1f} s")
    expected = start.seconds + (first.seconds - start.seconds) / 10
    print(
        f"  tokens of a tenth more: {grown.tokens / first.tokens:.1%} of the first; time: {grown.seconds:.1f} s, a start and a "
        f"tenth of the rest {expected:.1f} s"
    )


def _started(folder: Path, name: str, chains: int) -> Cost:
    """One `label` command on an input of `chains` chains."""
    run_dir = folder / name
    before = _logged(run_dir)
    settings = [
        f"data.path={write_chains(folder, chains)}",
        f"run_dir={run_dir}",
        "policy=oracle",
        f"policy.oracle.tokens_per_second={TOKENS_PER_SECOND}",
        "estimator=fixed",
        "run.show_chains=0",
        "run.report=false",
    ]
    began = time.monotonic()
    done = run_stepvalue(["label", *settings], timeout=1200)
    seconds = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    rollouts, tokens = _logged(run_dir)
    return Cost(seconds=seconds, rollouts=rollouts - before[0], tokens=tokens - before[1])


def _logged(run_dir: Path) -> tuple[int, int]:
    if not run_dir.exists():
        return 0, 0
    totals = run_status(LocalStorage(run_dir), time.time()).totals
    return totals.rollouts, totals.tokens


def _reading(folder: Path) -> None:
    """The input of a start alone, without an engine: read for the first time, and compared with a tenth more."""
    run = compose_label(["policy=oracle", f"data.path={write_chains(folder, STAGED)}"])
    more = compose_label(["policy=oracle", f"data.path={write_chains(folder, STAGED + STAGED // 10)}"])
    storage = LocalStorage(folder / "staged")
    staged_id = str(identity(run, input_digest(run.data.path))[STAGED_INPUT])
    with checker_for(run.grader) as checker:
        first = stage(storage, staged_id, run.data, run.run, checker)
        commit = Commit(
            kind=INPUT,
            sequence_id=staged_id,
            number=0,
            state=CommitState.WHOLE,
            shards=first.shards,
            totals=first.totals,
        )
        grown = grow(storage, commit, more.data, more.run, checker)
    assert grown.used == STAGED // 10
    print(
        f"  reading {STAGED:,} rows takes {first.seconds:.1f} s, reading a tenth more and comparing all rows "
        f"{grown.seconds:.1f} s"
    )
