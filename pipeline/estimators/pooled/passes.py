"""Assigns each rollout of a problem to the prefix whose value it is a trial of. Each rollout counts once.

Whether a rollout of a prefix reproduces the next step token for token is decided before its outcome. A rollout that does is
therefore an unbiased trial of the prefix after the step. The remaining rollouts are no longer unbiased trials of their own
prefix. `reproduction` has the joint evidence of both groups on the two values.

If rollouts reproduce several different steps after a prefix, only the step with the most rollouts counts. Rollouts that took
another step remain trials of the prefix. Where there is only one next step, it also counts if no rollout took it, because
leaving out such steps would make the other ones look more usual than they are. A problem none of whose steps was reproduced is
left out as a whole: its log may come from an estimator that does not record reproduced steps.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.core.records import Trials
from pipeline.estimators.pooled.reproduction import Branching
from pipeline.estimators.tree import NONE, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """For a tree: `own`, (correct, graded) of the nodes whose trials differ from their own rollouts, and `steps`, the counts of
    the steps that rollouts reproduced, by the node after the step."""

    own: Mapping[int, tuple[int, int]]
    steps: Mapping[int, Branching]


def passes_of(prefix_ids: Sequence[str], parents: Ints, trials: Mapping[str, Trials]) -> Passes | None:
    """Nodes are numbered as in `Tree`. None where no rollout reproduced a step."""
    if not any(any(trials[prefix].reached) for prefix in prefix_ids if prefix in trials):
        return None
    above = parents.tolist()
    at = {prefix: node for node, prefix in enumerate(prefix_ids)}
    arrived: list[_Tallies] = [{} for _ in prefix_ids]
    children = Counter(above)
    only_child = {parent: node for node, parent in enumerate(above) if children[parent] == 1}
    own: dict[int, tuple[int, int]] = {}
    steps: dict[int, Branching] = {}
    for node, prefix in enumerate(prefix_ids):
        here, have = arrived[node], trials.get(prefix, NONE)
        if not here and not have.outcomes:
            continue
        _add_own(here, node, have, at)
        ahead = {last: _child(node, last, above) for last in here}
        taken: Counter[int] = Counter()
        for last, child in ahead.items():
            if child is not None:
                taken[child] += here[last].graded
        step = min(taken, key=lambda child: (-taken[child], child), default=only_child.get(node))
        stayed = [tally for last, tally in here.items() if step is None or ahead[last] != step]
        correct, graded = sum(tally.correct for tally in stayed), sum(tally.graded for tally in stayed)
        if step is not None and (graded or taken[step]):
            arrived[step] = {last: tally for last, tally in here.items() if ahead[last] == step}
            steps[step] = Branching(taken=taken[step], left=graded, correct=correct)
            own[node] = 0, 0
        else:
            own[node] = correct, graded
    return Passes(own=own, steps=steps)


@dataclass(slots=True)
class _Tally:
    """Counts of graded rollouts."""

    correct: int = 0
    graded: int = 0


_Tallies = dict[int, _Tally]
"""By the last node of the chain that the rollouts reproduced."""


def _add_own(here: _Tallies, node: int, have: Trials, at: Mapping[str, int]) -> None:
    if not any(have.reached):
        tally = here.setdefault(node, _Tally())
        tally.correct += have.counts.correct
        tally.graded += have.counts.graded
        return
    for outcome, reached in zip(have.outcomes, have.reached, strict=True):
        if outcome is not None:
            last = node if reached is None else at.get(reached, node)
            tally = here.setdefault(last, _Tally())
            tally.correct += outcome
            tally.graded += 1


def _child(node: int, last: int, parents: Sequence[int]) -> int | None:
    """The child of `node` on the path to `last`. None where `last` is not below `node`."""
    while last > node and parents[last] != node:
        last = parents[last]
    return last if last > node else None
