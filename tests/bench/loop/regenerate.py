"""Wrong chains of the tiny policy, written again from before the step where their Monte Carlo value falls most, against
starting again from the problem: right answers for tokens.

The values are those that `label` computes with `estimator=fixed`, from the rollouts of the loop's pool (`replay`), and the
step is the one that `search=regenerate` chooses. Other rollouts, of the loop's sampler, judge both ways. What the values
cost is not counted: both ways begin with a chain that is labelled and known to be wrong.
"""

import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from pipeline.analysis.searches.estimates import resampling
from pipeline.core.records import Verdict
from pipeline.core.statistics import Floats, share
from pipeline.graders.registry import checker_for
from pipeline.searches.base import StepScore
from pipeline.searches.regenerate import start_step
from pipeline.searches.settings import RegenerateFrom
from tests.bench.loop.arms import DRAWS, FIXED, PROBLEMS, SEEDS, Row
from tests.bench.loop.experiment import POOL, ROLLOUTS, TEST_PROBLEMS
from tests.bench.loop.plan import SEED, SIZE
from tests.bench.loop.pool import PoolPart, completions, pool_part
from tests.bench.loop.problems import exercises
from tests.bench.loop.replay import Graded, label_settings, labelled
from tests.bench.loop.sampler import Sampler
from tests.bench.loop.search_table import shown

FRESH = 8
"""Rollouts of each prefix that judge."""
FRESH_SEED = 1_000
PER = 1_000
"""Tokens."""
Sums = dict[str, list[float]]
"""Of each problem: right answers and tokens of both ways, over its wrong chains."""


def regenerate() -> None:
    """Label, write again, and print the figures."""
    torch.set_num_threads(1)
    began = time.monotonic()
    POOL.mkdir(parents=True, exist_ok=True)
    chosen = exercises(random.Random(SEED), SIZE, SEEDS * PROBLEMS + TEST_PROBLEMS)[:PROBLEMS]
    part = pool_part(POOL / "train-0.parquet", chosen, draws=DRAWS, rollouts=ROLLOUTS, seed=0, show=print)
    settings = label_settings(*FIXED)
    checker = checker_for(settings.grader)
    try:
        graded = Graded(part=part, checker=checker, sampler=Sampler(FRESH_SEED))
        problems = [exercise.problem for exercise in chosen]
        rows = labelled(graded, problems, settings.estimator, draws=DRAWS, rollouts=ROLLOUTS).rows
        wrong = [row for row in rows if row["outcome"] is not True]
        starts = {start: [_start(row, start) for row in wrong] for start in RegenerateFrom}
        prefixes = sorted(
            {_prefix(row, 0) for row in wrong}
            | {_prefix(row, at) for of in starts.values() for row, at in zip(wrong, of, strict=True)}
        )
        fresh = completions(Sampler(FRESH_SEED), prefixes, FRESH)
        judging = Graded(
            part=PoolPart(exercises=part.exercises, draws=part.draws, rollouts=fresh),
            checker=checker,
            sampler=graded.sampler,
        )
        results = {prefix: _result(judging, prefix) for prefix in prefixes}
    finally:
        checker.close()
    print(
        f"{len(wrong):,} wrong chains of {len({row['problem'] for row in wrong}):,} problems, values of {ROLLOUTS} rollouts, "
        f"{FRESH} fresh ones of each of {len(prefixes):,} prefixes; {time.monotonic() - began:.0f} s"
    )
    for start, of in starts.items():
        for line in _lines(start, wrong, of, results):
            print(line)


def _start(row: Row, start: RegenerateFrom) -> int:
    """The step from which a chain is written again. The problem's own value stands before the first step."""
    return start_step([StepScore(score=value) for value in row["value"]], start, [row["root_value"]])


def _prefix(row: Row, step: int) -> str:
    """What is before a step, as the pool names it."""
    return f"{row['problem']}\n{row['solution'][: row['step_ends'][step - 1] if step else 0]}"


def _result(graded: Graded, prefix: str) -> tuple[float, float]:
    """Right answers and tokens of one rollout of a prefix, on average."""
    outcomes = [graded.outcome(prefix, issue, 0, frozenset()) for issue in range(FRESH)]
    right = sum(outcome.verdict is Verdict.CORRECT for outcome in outcomes)
    return right / FRESH, sum(outcome.n_tokens for outcome in outcomes) / FRESH


def _lines(
    start: RegenerateFrom, wrong: Sequence[Row], steps: Sequence[int], results: Mapping[str, tuple[float, float]]
) -> Iterator[str]:
    for text, least in (("all", 0), ("where it is not the first step", 1)):
        kept = [(row, step) for row, step in zip(wrong, steps, strict=True) if step >= least]
        sums: Sums = defaultdict(lambda: [0.0] * 4)
        for row, step in kept:
            both = (*results[_prefix(row, step)], *results[_prefix(row, 0)])
            sums[row["problem"]] = [old + new for old, new in zip(sums[row["problem"]], both, strict=True)]
        columns = np.array(list(sums.values()))
        right, tokens, right_root, tokens_root = columns.sum(axis=0) / len(kept)
        ratio = resampling(SEED).estimate(columns, _ratio)
        yield (
            f"{start.value}, {text}: {len(kept):,} chains; again from there {right:.3f} right with {tokens:.1f} tokens, "
            f"{PER * right / tokens:.2f} per {PER:,}; from the problem {right_root:.3f} with {tokens_root:.1f}, "
            f"{PER * right_root / tokens_root:.2f}; ratio {shown(ratio)}"
        )


def _ratio(sums: Floats) -> Floats:
    return share(share(sums[..., 0], sums[..., 1]), share(sums[..., 2], sums[..., 3]))
