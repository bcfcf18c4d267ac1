"""Whose trials the rollouts of a problem are, each counted once.

Whether a rollout of a prefix reproduces a step token for token is decided before its outcome, so those that do are fair trials
of the prefix behind the step. Those that do not are no fair trials of their own prefix any more, whose value they share in with
the others: what both together say of the two values is told by `branching.factor`.

Of several steps behind a prefix the one counts that most rollouts took; those that took another one stay where they are.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.core.records import Trials
from pipeline.estimators.branching import Branching
from pipeline.estimators.grid import Ints
from pipeline.estimators.trials import NONE


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
    arrived: list[_Tallies] = [{} for _ in prefix_ids]
    own: dict[int, tuple[int, int]] = {}
    steps: dict[int, Branching] = {}
    for node, prefix in enumerate(prefix_ids):
        here, have = arrived[node], trials.get(prefix, NONE)
        if not here and not any(have.reached):
            continue
        _add_own(here, node, have, at)
        ahead = {last: _child(node, last, above) for last in here}
        taken: Counter[int] = Counter()
        for last, child in ahead.items():
            if child is not None:
                taken[child] += here[last].graded
        step = min(taken, key=lambda child: (-taken[child], child), default=None)
        stayed = [tally for last, tally in here.items() if step is None or ahead[last] != step]
        correct, graded = sum(tally.correct for tally in stayed), sum(tally.graded for tally in stayed)
        if step is not None:
            arrived[step] = {last: tally for last, tally in here.items() if ahead[last] == step}
            steps[step] = Branching(taken=taken[step], left=graded, correct=correct)
            own[node] = 0, 0
        else:
            own[node] = correct, graded
    return Passes(own=own, steps=steps)


@dataclass(slots=True)
class _Tally:
    """Graded rollouts."""

    correct: int = 0
    graded: int = 0


_Tallies = dict[int, _Tally]
"""By the last node that they came by."""


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
    """The child of a node that leads to the last one; None where none does."""
    while last > node and parents[last] != node:
        last = parents[last]
    return last if last > node else None
