"""The pipeline's tokens per second over those of one bare `vllm.LLM.generate` call with the same prompts, start-up left out.

Each round has one of either, so that what else the machine does falls on both.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice, takewhile
from pathlib import Path
from statistics import median

from pipeline.engines.embedded import embedded_model
from tests.bench.gpu_work import ON_CPU, Job
from tests.bench.raw import Rate, on_cpu, raw_engine
from tests.bench.watched import Role, watched

CHAINS = 40
ROUNDS = 2
SETTINGS = ["data=sample", "estimator=fixed", f"data.limit={CHAINS}", "run.show_chains=0", "run.report=false"]
LOOK_SECONDS = 2.0
"""Seldom: bare vLLM is not looked at while it generates."""


def engine_share() -> None:
    print(f"\nengine: {CHAINS} chains of the sample on the embedded model, bare LLM.generate and the pipeline in turn")
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as name:
        folder = Path(name)
        job = Job(
            model=str(embedded_model()),
            random_weights=False,
            gpu=None,
            folder=folder,
            scale=ON_CPU,
            settings=SETTINGS,
        )
        config, prompts = job.config(), job.prompts()
        ratios = []
        with raw_engine(folder, job.engine(), on_cpu(config), config, prompts) as raw:
            for turn in range(ROUNDS):
                bare = raw.generated()
                run = labelled([*SETTINGS, f"run_dir={folder / f'run-{turn}'}"], folder / f"run-{turn}")
                ours = run.rate
                ratios.append(ours.tokens_per_second / bare.tokens_per_second)
                print(f"  LLM.generate {_shown(bare)}; pipeline {_shown(ours)}; ratio {ratios[-1]:.3f}", flush=True)
                for line in run.shown:
                    print(f"    {line}")
        print(
            f"  ratio {median(ratios):.3f} in the median of {ROUNDS} rounds, {min(ratios):.3f} to {max(ratios):.3f}; "
            f"{len(prompts):,} prompts"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRun:
    """A `label` command: seconds until its engine was there, what it generated from then until its last commit, and what its
    summary says of its engine."""

    starting: float
    rate: Rate
    shown: Sequence[str]


def labelled(overrides: list[str], run_dir: Path, heard: Callable[[str], None] | None = None) -> LabelRun:
    """Of a new run directory. `heard` gets each line of its output when it comes."""
    command = [sys.executable, "-m", "pipeline", "label", *overrides]
    done = watched(command, look_seconds=LOOK_SECONDS, heard=heard)
    loaded = done.first("labelling").at
    committed = max(record.stat().st_mtime for record in (run_dir / "commits").glob("unit-*.json"))
    spent = done.between(loaded, committed)
    tokens = int(done.first("tokens").line.split()[1].replace(",", ""))
    return LabelRun(
        starting=loaded - done.began,
        rate=Rate(
            tokens=tokens,
            seconds=committed - loaded,
            cpu_seconds=spent[Role.ENGINE],
            other_cpu_seconds=sum(spent.values()) - spent[Role.ENGINE],
        ),
        shown=shown_of("engine", [said.line for said in done.said]),
    )


def shown_of(head: str, lines: Sequence[str]) -> list[str]:
    """The line of a summary that begins so and those that go on with it, which are indented."""
    beginning = dropwhile(lambda line: not line.startswith(f"{head} "), lines)
    first = list(islice(beginning, 1))
    return [*first, *takewhile(lambda line: line.startswith(" "), beginning)]


def _shown(rate: Rate) -> str:
    beside = rate.other_cpu_seconds / rate.seconds
    return f"{rate.tokens_per_second:.1f} tokens/s ({rate.tokens:,} tokens, beside the engine {beside:.1%} of a core)"
