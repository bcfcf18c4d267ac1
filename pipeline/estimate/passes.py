"""Whose trials the rollouts of a problem are, each counted once.

Whether a rollout of a prefix reproduces a step token for token is decided before its outcome, so those that do are fair trials
of the prefix behind the step. Those that do not are no fair trials of their own prefix any more, whose value they share in with
the others: what both together say of the two values is told by `branching.factor`.

Of several steps behind a prefix the one counts that most rollouts took; those that took another one stay where they are.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.estimate.branching import Branching
from pipeline.estimate.grid import Ints
from pipeline.records import Trials

_ROOT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Of the nodes of a tree: `own`, (correct, graded) of those whose number of trials is not that of their own rollouts, and
    `steps`, by the node behind them, of those steps that rollouts took."""

    own: Mapping[int, tuple[int, int]]
    steps: Mapping[int, Branching]


def passes_of(prefix_ids: Sequence[str], parents: Ints, trials: Mapping[str, Trials]) -> Passes | None:
    """Nodes as in `Tree`; None where no rollout of them took a step."""
    if not any(any(trials[prefix].reached) for prefix in prefix_ids if prefix in trials):
        return None
    above = parents.tolist()
    at = {prefix: node for node, prefix in enumerate(prefix_ids)}
    arrived: list[list[_Trial]] = [[] for _ in prefix_ids]
    own: dict[int, tuple[int, int]] = {}
    steps: dict[int, Branching] = {}
    for node, prefix in enumerate(prefix_ids):
        here = [*arrived[node], *(_own(node, trials[prefix], at, above) if prefix in trials else ())]
        taken = Counter(trial.path[-1] for trial in here if trial.path)
        if taken:
            child = min(taken, key=lambda each: (-taken[each], each))
            stayed = [trial for trial in here if child not in trial.path[-1:]]
            arrived[child] = [
                _Trial(path=trial.path[:-1], correct=trial.correct) for trial in here if child in trial.path[-1:]
            ]
            steps[child] = Branching(
                taken=taken[child], left=len(stayed), correct=sum(trial.correct for trial in stayed)
            )
            own[node] = 0, 0
        elif arrived[node]:
            own[node] = sum(trial.correct for trial in here), len(here)
    return Passes(own=own, steps=steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """A graded rollout on its way: the nodes it is still to come by, the last one first."""

    path: tuple[int, ...]
    correct: bool


def _own(node: int, have: Trials, at: Mapping[str, int], parents: Sequence[int]) -> Iterator[_Trial]:
    reached = have.reached or (None,) * len(have.outcomes)
    for outcome, last in zip(have.outcomes, reached, strict=True):
        if outcome is not None:
            path = () if last is None else _path(node, at.get(last, _ROOT), parents)
            yield _Trial(path=path, correct=outcome)


def _path(node: int, last: int, parents: Sequence[int]) -> tuple[int, ...]:
    """From the last node up to the first below `node`; empty where it is not below."""
    path = []
    while last not in (_ROOT, node):
        path.append(last)
        last = parents[last]
    return tuple(path) if last == node else ()
