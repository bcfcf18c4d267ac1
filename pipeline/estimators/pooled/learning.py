"""A kernel learnt from a unit: expectation maximisation over its chains (Baum and Welch 1970), on top of what was known.

This is empirical Bayes: the run's own chains say how values move, and each chain is then judged in that light. Each iteration
would raise the likelihood of the unit times the density of the prior, did the prior stay the same; it is fitted on the way.

A kernel is stored as a table of one row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from pipeline.core.records import Trials
from pipeline.core.schemas import SCHEMAS
from pipeline.estimators.pooled.forest import forest_of
from pipeline.estimators.pooled.grid import POINTS
from pipeline.estimators.pooled.kernel import PRIOR, PRIOR_VERSION, Kernel, transition_model
from pipeline.estimators.pooled.posterior import expected_moves
from pipeline.estimators.tree import Tree

_ITERATIONS = 5
"""More make the kernel fit the unit too closely: its beliefs are then surer than they are right."""
_KEPT = 0.7
"""What is known from earlier units counts so much less with each new one: it was told by a kernel that knew less."""
_KNOWN_WELL = 64
"""Chains behind which the pooled estimator trusts what it has learnt: what it is taken to know for most of a large run."""


def learn_kernel(known: Kernel, trees: Sequence[Tree], trials: Mapping[str, Trials]) -> Kernel:
    """What is known with these trees added; for the units behind this one, and for this one's own values."""
    if not trees:
        return known
    forest = forest_of(trees, trials)
    kernel = known
    for _ in range(_ITERATIONS):
        mass, moves = expected_moves(forest, transition_model(kernel))
        last = np.zeros((2, POINTS))
        for outcome in (0, 1):
            last[outcome] = mass[forest.ends[forest.right == outcome]].sum(axis=0)
        kernel = Kernel(
            start=_KEPT * known.start + mass[forest.levels[0]].sum(axis=0),
            steps=_KEPT * known.steps + moves,
            last=_KEPT * known.last + last,
            chains=known.chains + len(forest.ends),
        )
    return kernel


TABLE = "kernels"


def kernel_table(kernel: Kernel) -> pa.Table:
    """One row: the expected counts, and which prior they stand beside."""
    row = {
        "prior": PRIOR_VERSION,
        "chains": kernel.chains,
        "start": kernel.start.tolist(),
        "steps": kernel.steps.tolist(),
        "last": kernel.last.tolist(),
    }
    return pa.Table.from_pylist([row], schema=SCHEMAS[TABLE])


def kernel_of(table: pa.Table) -> Kernel:
    """The inverse of `kernel_table`. Raises ValueError for one that another version has learnt."""
    row = table.to_pylist()[0]
    kernel = Kernel(
        start=np.array(row["start"]), steps=np.array(row["steps"]), last=np.array(row["last"]), chains=row["chains"]
    )
    shapes = kernel.start.shape, kernel.steps.shape, kernel.last.shape
    if row["prior"] != PRIOR_VERSION or shapes != ((POINTS,), (POINTS, POINTS), (2, POINTS)):
        raise ValueError("the kernel was learnt by another version of stepvalue")
    return kernel


class KernelLearner:
    """See `base.Learner`. Its state is a `Kernel`."""

    table = TABLE
    version = PRIOR_VERSION

    def initial(self) -> Kernel:
        return PRIOR

    def learn(self, known: Kernel, trees: Sequence[Tree], trials: Mapping[str, Trials]) -> Kernel:
        return learn_kernel(known, trees, trials)

    def familiar(self, known: Kernel) -> Kernel:
        return replace(known, chains=max(known.chains, _KNOWN_WELL))

    def stored(self, known: Kernel) -> pa.Table:
        return kernel_table(known)

    def restored(self, table: pa.Table) -> Kernel:
        return kernel_of(table)
