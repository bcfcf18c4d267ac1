"""What everything but model and grading costs: CPU per rollout in the worker and in all processes, and the driver's memory.

The oracle engine answers. What its answers and their grading take is measured alone, and taken off.
"""

import asyncio
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pipeline.config.fields import as_type
from pipeline.core.records import Completion
from pipeline.engines.oracle import OracleEngine, OraclePolicyConfig
from pipeline.graders.question import grade_at_once
from pipeline.graders.registry import checker_for
from tests.bench.recorder import requests_of
from tests.bench.watched import Role, watched
from tests.settings import compose_label

REPEATS = {100_000: 3, 1_000_000: 1}
"""Number of rollouts of a run -> how often it is repeated."""
STEPS = 6
ROLLOUTS = 8
PLAYED = 20_000
"""Rollouts that the oracle and the checker are given alone."""
_PER_CHAIN = STEPS * ROLLOUTS  # the bare problem and all steps but the last


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one run, CPU: in µs per rollout from the first request to the last commit, without what is `Apart`; in seconds before
    that. And the driver's largest resident memory."""

    rollouts: int
    worker: float
    driver: float
    ray: float
    starting: float
    driver_mib: float

    @property
    def all(self) -> float:
        return self.worker + self.driver + self.ray


def control_plane() -> None:
    print("\ncontrol plane: oracle engine, 6-step chains, 8 rollouts per prefix; µs CPU per rollout while labelling")
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as name:
        folder = Path(name)
        apart = _apart(folder)
        print(
            f"  left out of the worker's: what it takes the oracle to make answers up, {apart.played:.1f} µs, "
            f"and to grade them, {apart.graded:.1f} µs"
        )
        heads = "".join(f"{head:>19}" for head in ("worker", "driver", "Ray", "all"))
        print(f"  {'rollouts':>10}{heads} {'start-up, s':>12} {'driver MiB':>11}")
        for size, repeats in REPEATS.items():
            costs = [_run(folder, size // _PER_CHAIN, repeat, apart) for repeat in range(repeats)]
            parts = ([getattr(cost, part) for cost in costs] for part in ("worker", "driver", "ray", "all"))
            spread = "".join(f"{f'{median(part):.1f} ({min(part):.1f}-{max(part):.1f})':>19}" for part in parts)
            print(
                f"  {costs[0].rollouts:>10,}{spread} {median(cost.starting for cost in costs):>12.1f} "
                f"{max(cost.driver_mib for cost in costs):>11.0f}",
                flush=True,
            )


def write_chains(folder: Path, chains: int) -> Path:
    data = folder / f"{chains}.jsonl"
    with data.open("w") as file:
        for number in range(chains):
            steps = [
                f"Step {step} of sum {number} adds {step} and keeps the rest as it was." for step in range(1, STEPS)
            ]
            row = {
                "id": str(number),
                "problem": f"Problem {number}: add the small numbers that are given and tell their sum.",
                "answer": str(number),
                "steps": [*steps, f"The answer is {number}."],
            }
            file.write(json.dumps(row) + "\n")
    return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """µs CPU per rollout of what is no control plane: the oracle's making answers up, and their grading."""

    played: float
    graded: float


def _apart(folder: Path) -> Apart:
    config = compose_label(_overrides(folder, PLAYED // _PER_CHAIN, "recorded"))
    oracle = OracleEngine(as_type(config.policy, OraclePolicyConfig))
    requests = requests_of(config, folder / "recorded", oracle.tokenizer, oracle.max_model_len)

    async def played() -> list[Completion]:
        return [completion async for batch in oracle.generate(requests) for completion in batch]

    with checker_for(config.grader) as checker:
        began = time.process_time()
        completions = asyncio.run(played())
        played_at = time.process_time()
        for each in completions:
            grade_at_once(checker, each.request.problem.golds, each.request.prefix.text + each.text, each.finish)
        graded_at = time.process_time()
    count = len(completions) / 1e6
    return Apart(played=(played_at - began) / count, graded=(graded_at - played_at) / count)


def _overrides(folder: Path, chains: int, run: str) -> list[str]:
    data = write_chains(folder, chains)
    fixed = [
        "policy=oracle",
        "estimator=fixed",
        f"sampling.rollouts={ROLLOUTS}",
        "run.show_chains=0",
        "run.report=false",
    ]
    return [f"data.path={data}", f"run_dir={folder / run}", *fixed]


def _run(folder: Path, chains: int, repeat: int, apart: Apart) -> Cost:
    name = f"{chains}-{repeat}"
    done = watched([sys.executable, "-m", "pipeline", "label", *_overrides(folder, chains, name)])
    loaded = done.first("labelling").at
    committed = max(record.stat().st_mtime for record in (folder / name / "commits").glob("unit-*.json"))
    rollouts = chains * _PER_CHAIN
    spent = {role: seconds / rollouts * 1e6 for role, seconds in done.between(loaded, committed).items()}
    return Cost(
        rollouts=rollouts,
        worker=spent[Role.WORKER] - apart.played - apart.graded,
        driver=spent[Role.DRIVER],
        ray=spent[Role.RAY],
        starting=sum(done.between(done.began, loaded).values()),
        driver_mib=done.driver_mib,
    )
