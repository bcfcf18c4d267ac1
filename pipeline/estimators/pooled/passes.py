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


_Tallies = dict[int, tuple[int, int]]
"""(correct, graded) rollouts by the last node that they reproduced: the node that they are at, or one below it."""


def passes_of(prefix_ids: Sequence[str], parents: Ints, trials: Mapping[str, Trials]) -> Passes | None:
    """Nodes are numbered as in `Tree`. None where no rollout reproduced a step."""
    found = [trials.get(prefix, NONE) for prefix in prefix_ids]
    reproduced = [any(have.reached) for have in found]
    if not any(reproduced):
        return None
    above = parents.tolist()
    at = {prefix: node for node, prefix in enumerate(prefix_ids)}
    only_child: dict[int, int | None] = {}
    for node, parent in enumerate(above):
        only_child[parent] = None if parent in only_child else node
    arrived: dict[int, _Tallies] = {}
    own: dict[int, tuple[int, int]] = {}
    steps: dict[int, Branching] = {}
    for node, have in enumerate(found):
        if reproduced[node] or node in arrived:
            here = arrived.pop(node, {})
            if reproduced[node]:
                _add_each(here, node, have, at, above)
            else:
                _add(here, node, have.counts.correct, have.counts.graded)
            step = only_child.get(node) or _most_taken(here, node, above)
            correct, graded = here.pop(node, (0, 0))
            taken = sum(went_on for _, went_on in here.values())
            if here and step is not None:
                arrived[step] = here
        elif have.outcomes:
            step, taken, correct, graded = only_child.get(node), 0, have.counts.correct, have.counts.graded
        else:
            continue
        if step is not None and (graded or taken):
            own[node] = 0, 0
            steps[step] = Branching(taken, graded, correct)
        else:
            own[node] = correct, graded
    return Passes(own=own, steps=steps)


def _add_each(here: _Tallies, node: int, have: Trials, at: Mapping[str, int], parents: Sequence[int]) -> None:
    for outcome, reached in zip(have.outcomes, have.reached, strict=True):
        if outcome is not None:
            last = node if reached is None else at.get(reached, node)
            if _child(node, last, parents) == node:
                last = node
            _add(here, last, outcome, 1)


def _add(here: _Tallies, last: int, correct: int, graded: int) -> None:
    before = here.get(last, (0, 0))
    here[last] = before[0] + correct, before[1] + graded


def _most_taken(here: _Tallies, node: int, parents: Sequence[int]) -> int | None:
    """The child of `node` that most rollouts took. Those that took another one are counted at `node`."""
    children = {last: _child(node, last, parents) for last in here if last != node}
    taken: Counter[int] = Counter()
    for last, child in children.items():
        taken[child] += here[last][1]
    step = min(taken, key=lambda child: (-taken[child], child), default=None)
    for last, child in children.items():
        if child != step:
            _add(here, node, *here.pop(last))
    return step


def _child(node: int, last: int, parents: Sequence[int]) -> int:
    """The child of `node` on the path to `last`. `node` where `last` is not below it."""
    while last > node and parents[last] != node:
        last = parents[last]
    return max(last, node)
