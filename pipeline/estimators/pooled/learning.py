"""Learns a kernel from a unit: expectation maximization over its chains (Baum and Welch 1970), starting from a known kernel.

This is empirical Bayes: the chains of the run determine how values change along a chain, and this is the prior of each chain.
With a constant prior, each iteration would increase the likelihood of the unit times the density of the prior. Here the prior
is fitted as well.

A kernel is stored as a table of one row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from pipeline.core.records import Trials
from pipeline.core.tables import KERNELS, KernelRow
from pipeline.estimators.pooled.forest import forest_of
from pipeline.estimators.pooled.grid import POINTS
from pipeline.estimators.pooled.kernel import PRIOR, PRIOR_VERSION, Kernel, transition_model
from pipeline.estimators.pooled.posterior import expected_moves
from pipeline.estimators.pooled.reproduction import ANGLES, KINDS
from pipeline.estimators.tree import Tree

_ITERATIONS = 5
"""With more iterations the kernel overfits the unit, and its posteriors become overconfident."""
_KNOWN_WELL = 64
"""Chains after which the pooled estimator trusts its kernel. Assumed for most of a large run."""


class KernelLearner:
    """A `base.Learner` whose state is a `Kernel`. `misses`: see `Kernel.misses`."""

    table = KERNELS.name
    version = PRIOR_VERSION

    def __init__(self, misses: float = 0.0) -> None:
        self._misses = misses

    def initial(self) -> Kernel:
        return replace(PRIOR, misses=self._misses) if self._misses else PRIOR

    def learn(self, known: Kernel, trees: Sequence[Tree], trials: Mapping[str, Trials]) -> Kernel:
        """The kernel with these trees added. It is used for the values of this unit and for later units."""
        if not trees:
            return known
        forest = forest_of(trees, trials)
        kernel = known
        for _ in range(_ITERATIONS):
            mass, moves, reproduced = expected_moves(forest, transition_model(kernel))
            last = np.zeros((2, POINTS))
            for outcome in (0, 1):
                last[outcome] = mass[forest.ends[forest.right == outcome]].sum(axis=0)
            kernel = replace(
                known,
                start=known.start + mass[forest.levels[0]].sum(axis=0),
                steps=known.steps + moves,
                last=known.last + last,
                reproduced=known.reproduced + reproduced,
                chains=known.chains + len(forest.ends),
            )
        return kernel

    def familiar(self, known: Kernel) -> Kernel:
        return replace(known, chains=max(known.chains, _KNOWN_WELL))

    def to_table(self, known: Kernel) -> pa.Table:
        """One row with the expected counts and the version of their prior."""
        row = KernelRow(
            prior=PRIOR_VERSION,
            chains=known.chains,
            start=known.start.tolist(),
            steps=known.steps.tolist(),
            last=known.last.tolist(),
            reproduced=known.reproduced.tolist(),
        )
        return KERNELS.to_table([row])

    def from_table(self, table: pa.Table) -> Kernel:
        """The inverse of `to_table`. Raises ValueError for a kernel of another version."""
        row = table.to_pylist()[0]
        kernel = Kernel(
            start=np.array(row["start"]),
            steps=np.array(row["steps"]),
            last=np.array(row["last"]),
            reproduced=np.array(row.get("reproduced")),
            chains=row["chains"],
            misses=self._misses,
        )
        shapes = kernel.start.shape, kernel.steps.shape, kernel.last.shape, kernel.reproduced.shape
        if row["prior"] != PRIOR_VERSION or shapes != ((POINTS,), (POINTS, POINTS), (2, POINTS), (KINDS, ANGLES)):
            raise ValueError("the kernel was learned by another version of stepvalue")
        return kernel
