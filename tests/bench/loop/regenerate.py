"""Wrong chains of the tiny policy, written again from before the step where their Monte Carlo value falls most, against
starting again from the problem: right answers for tokens.

The values are those of `label` with `estimator=fixed`, and the step is the one that `search=regenerate` chooses. Other rollouts
of the same prefixes judge both ways. What the values cost is not counted: both ways begin with a chain that is labelled and
known to be wrong.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from pipeline.analysis.comparison import bootstrap
from pipeline.core.statistics import Floats, share
from pipeline.searches.base import StepScore
from pipeline.searches.regenerate import start_step
from pipeline.searches.settings import RegenerateFrom
from tests.bench.loop.arms import FIXED, Arm, Row
from tests.bench.loop.experiment import POOL, Experiment
from tests.bench.loop.plan import SEED
from tests.bench.loop.search_table import shown
from tests.bench.loop.tiny_runs import TinyRuns

LABELS = Arm(name="N=4", estimator=FIXED, rollouts=4)
FRESH = 8
"""Rollouts of each prefix that judge."""
FRESH_SEED = 1_000
PER = 1_000
"""Tokens."""


def regenerate() -> None:
    torch.set_num_threads(1)
    lines(Experiment(POOL, print))


def lines(experiment: Experiment) -> None:
    wrong = [row for row in experiment.labelled(LABELS, 0).rows if row["outcome"] is not True]
    judging = TinyRuns(experiment.folder / "fresh", FRESH_SEED).labelled_chains("wrong", wrong, rollouts=FRESH)
    # Prefixes of chains that the policy sampled are named by their tokens, those of given chains by their text.
    prefixes = {_chain(row): (row["root_prefix_id"], *row["prefix_ids"]) for row in judging.rows}
    fresh = [[judging.by_prefix[each] for each in prefixes[_chain(row)][:-1]] for row in wrong]
    print(f"{len(wrong):,} wrong chains, values of {LABELS.rollouts} rollouts, {FRESH} fresh ones of each prefix")
    for start in RegenerateFrom:
        steps = [
            start_step([StepScore(score=value) for value in row["value"]], start, [row["root_value"]]) for row in wrong
        ]
        for line in _lines(start, wrong, steps, fresh):
            print(line)


def _chain(row: Row) -> tuple[str, ...]:
    return row["problem"], *row["steps"]


def _lines(
    start: RegenerateFrom, wrong: Sequence[Row], steps: Sequence[int], fresh: Sequence[Sequence[tuple[float, float]]]
) -> Iterator[str]:
    for text, least in (("all", 0), ("where it is not the first step", 1)):
        kept = [each for each in zip(wrong, steps, fresh, strict=True) if each[1] >= least]
        if not kept:
            continue
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * 4)
        for row, step, results in kept:
            both = (*results[step], *results[0])
            sums[row["problem"]] = [old + new for old, new in zip(sums[row["problem"]], both, strict=True)]
        columns = np.array(list(sums.values()))
        right, tokens, right_root, tokens_root = columns.sum(axis=0) / len(kept)
        ratio = bootstrap(columns, _ratio, seed=SEED)
        yield (
            f"{start.value}, {text}: {len(kept):,} chains; again from there {right:.3f} right with {tokens:.1f} tokens, "
            f"{PER * right / tokens:.2f} per {PER:,}; from the problem {right_root:.3f} with {tokens_root:.1f}, "
            f"{PER * right_root / tokens_root:.2f}; ratio {shown(ratio)}"
        )


def _ratio(sums: Floats) -> Floats:
    return share(share(sums[..., 0], sums[..., 1]), share(sums[..., 2], sums[..., 3]))
