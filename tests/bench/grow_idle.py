"""Whether growing a run keeps its engine busy: 200 problems on one engine of 1,024 places, on a virtual clock.

The driver, the scheduler, the worker, the pickers and the storage are the real ones; the policy is a model of 7 billion
parameters on an H100 that works as fast as the hardware allows (`scale.engine`). Steps are those of the oracle's tree. *Idle*
is the share of the engine's places that stand empty while no request waits for one.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.__main__ import compose_label
from pipeline.cli.compose import compose
from pipeline.cli.grow import GROW
from pipeline.config.label import LabelConfig
from pipeline.pickers.registry import PICKERS
from pipeline.runtime.grow import grow
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker import Worker
from pipeline.runtime.worker_handle import WorkerHandle, WorkerPool
from pipeline.storage.location import storage_at
from tests.bench.scale.cache import BLOCK
from tests.bench.scale.engine import VirtualEngine
from tests.bench.scale.pace import QWEN_7B
from tests.bench.scale.run import on_a_virtual_clock
from tests.bench.search_idle import Replies
from tests.conftest import write_rows
from tests.runtime.in_process import InProcessWorker, label_in_process
from tests.searches.runs import sums

PROBLEMS, SLOTS = 200, 1024
ROLLOUTS_OF_A_PROBLEM = 240
"""What a growth may spend, on average: 30 prefixes with 8 rollouts each."""
GENERATED_TOKENS = 150
TREE = (
    "policy.oracle.world=tree",
    "policy.oracle.spread=1.0",
    "policy.oracle.branching=5",
    "policy.oracle.tokens_per_step=60",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A growth on the virtual clock. `tail`: the part of `idle` after the last moment at which the engine was full."""

    promoted: int
    rollouts: int
    seconds: float
    idle: float
    tail: float


def play(pick: str, folder: Path, problems: int = PROBLEMS) -> Played:
    run_dir = folder / "run"
    rows = write_rows(folder / "rows.jsonl", sums(problems))
    label_in_process(
        compose_label(
            [
                *("policy=oracle", "estimator=fixed", "sampling.solutions=3", "sampling.store_tokens=true", *TREE),
                *(f"data.path={rows}", f"run_dir={run_dir}"),
            ]
        )
    )
    budget = problems * ROLLOUTS_OF_A_PROBLEM
    words = [f"run_dir={run_dir}", f"grow={pick}", f"grow.budget={budget}", "grow.budget_unit=rollouts"]
    config = compose(GROW, words).settings()
    blocks = (QWEN_7B.kv_tokens - SLOTS * GENERATED_TOKENS) // BLOCK
    engine = VirtualEngine(QWEN_7B, Replies(config), capacity=SLOTS, cache_blocks=blocks)

    @contextmanager
    def hiring(label: LabelConfig) -> Iterator[WorkerPool]:
        def hire(_attempt: int) -> WorkerHandle:
            return InProcessWorker(Worker(label, storage_at(str(run_dir)), engine))

        yield WorkerPool(hire=hire, workers=1)

    grown = grow(config, hiring, lambda _: None, StopSignal(), run=on_a_virtual_clock)
    seconds = grown.summary.seconds_labelling
    return Played(
        promoted=grown.counts.promoted,
        rollouts=grown.counts.rollouts,
        seconds=seconds,
        idle=engine.work.unfilled_seconds / seconds,
        tail=engine.tail_seconds / seconds,
    )


def grow_idle() -> None:
    print(f"\ngrow: {PROBLEMS} problems on {SLOTS} places of {QWEN_7B.name}, virtual clock; idle is wanted <= 5 %")
    print("tail: the part of it after the engine was full for the last time")
    print(f"  {'grow=':<11}{'prefixes':>9}{'rollouts':>10}{'seconds':>9}{'idle':>8}{'tail':>8}")
    for pick in PICKERS.our_settings():
        with tempfile.TemporaryDirectory(prefix="stepvalue-grow-") as folder:
            found = play(pick, Path(folder))
        print(
            f"  {pick:<11}{found.promoted:>9,}{found.rollouts:>10,}{found.seconds:>9.1f}{found.idle:>8.1%}{found.tail:>8.1%}",
            flush=True,
        )
