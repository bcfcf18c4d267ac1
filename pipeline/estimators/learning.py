"""A kernel learnt from a unit: expectation maximisation over its chains (Baum and Welch 1970), on top of what was known.

This is empirical Bayes: the run's own chains say how values move, and each chain is then judged in that light. Each iteration
would raise the likelihood of the unit times the density of the prior, did the prior stay the same; it is fitted on the way.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.core.records import Trials
from pipeline.estimators.beliefs import expected
from pipeline.estimators.grid import POINTS
from pipeline.estimators.kernel import Kernel, motion
from pipeline.estimators.tree import Tree, forest_of

_ITERATIONS = 5
"""More make the kernel fit the unit too closely: its beliefs are then surer than they are right."""
_KEPT = 0.7
"""What is known from earlier units counts so much less with each new one: it was told by a kernel that knew less."""


def learnt(known: Kernel, trees: Sequence[Tree], trials: Mapping[str, Trials]) -> Kernel:
    """What is known with these trees added; for the units behind this one, and for this one's own values."""
    if not trees:
        return known
    forest = forest_of(trees, trials)
    kernel = known
    for _ in range(_ITERATIONS):
        mass, moves = expected(forest, motion(kernel))
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
