"""What to sample next: for every problem of a unit, how many more rollouts of which prefix.

A problem's decisions depend on its own chains, their trials and the kernel alone, never on the order of completion: they are
taken when all rollouts asked for before are in.
"""

from collections.abc import Mapping, Sequence

from pipeline.config.choices import EstimatorName
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import Trials
from pipeline.estimators import bisect, first_success, fixed, pooled_choice
from pipeline.estimators.kernel import Kernel
from pipeline.estimators.tree import Tree
from pipeline.estimators.trials import NONE


def next_rollouts(
    problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, config: EstimatorConfig, kernel: Kernel
) -> list[dict[str, int]]:
    """One dict per problem: prefix id -> how many more; empty where nothing is owed. `rollouts`: `sampling.rollouts`."""
    if config.name is EstimatorName.pooled:
        return pooled_choice.next_rollouts(problems, trials, rollouts, config, kernel)
    return [_own(tree, trials, rollouts, config) for tree in problems]


def _own(tree: Tree, trials: Mapping[str, Trials], rollouts: int, config: EstimatorConfig) -> dict[str, int]:
    owed: dict[str, int] = {}
    if config.name is EstimatorName.bisect:
        for chain in tree.chains:
            for prefix, more in bisect.owed(chain, trials, rollouts, config).items():
                owed[prefix] = max(more, owed.get(prefix, 0))
        return owed
    for prefix, closed in zip(tree.prefix_ids, tree.closed, strict=True):
        have = trials.get(prefix, NONE)
        more = (
            fixed.owed(have, rollouts)
            if config.name is EstimatorName.fixed
            else first_success.owed(have, rollouts, config)
        )
        if more and not closed:
            owed[prefix] = more
    return owed
