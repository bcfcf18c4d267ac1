"""The next nodes of a problem to measure: what a picker says, within a budget. Pure.

A round takes at most half of what is left of a problem's budget, so that later rounds see the outcomes of earlier ones. It
takes `LEAST_PICKS` nodes nevertheless, if they can be paid: a problem with little left would else have many rounds of one node,
for which the engine waits. A problem is done when the picker has no pick that can be paid.
"""

import math
from collections.abc import Collection, Sequence
from itertools import islice

from pipeline.config.choices import BudgetUnit
from pipeline.pickers.base import Pick, Picker, Problem
from pipeline.trees.posterior import posteriors
from pipeline.trees.tree import RolloutTree, TreeNode

MOST_PICKS = 4096
"""Of one problem at a time."""
LEAST_PICKS = 6
"""Of a round."""


def problem_of(
    tree: RolloutTree,
    *,
    strength: float,
    threshold: float,
    rollouts: int,
    unit: BudgetUnit,
    closed: Collection[int] = (),
) -> Problem:
    """A problem as pickers see it. `strength`: see `trees.posterior`. `closed`: nodes that cannot be measured."""
    return Problem(
        tree=tree,
        posteriors=posteriors(tree, strength),
        costs=[math.ceil(rollouts * (node.mean_tokens if unit is BudgetUnit.tokens else 1)) for node in tree.nodes],
        measured=[_is_known(node) or at in closed for at, node in enumerate(tree.nodes)],
        rollouts=rollouts,
        threshold=threshold,
        strength=strength,
    )


def next_picks(picker: Picker, problem: Problem, left: float) -> list[Pick]:
    """The picks of the next round. `left`: what is left of the problem's budget."""
    found: list[Pick] = []
    spent = 0.0
    for pick in picker.picks(problem):
        cost = problem.costs[pick.node]
        enough = len(found) >= LEAST_PICKS and spent + cost > left / 2
        if enough or spent + cost > left or len(found) == MOST_PICKS:
            break
        found.append(pick)
        spent += cost
    return found


def _is_known(node: TreeNode) -> bool:
    return node.issued.graded + node.issued.ungraded > 0 or (node.ended and node.outcome is not None)


def allotted(picks: Sequence[Sequence[tuple[float, float]]], budget: float, *, comparable: bool) -> list[int]:
    """The budget of each problem, together at most `budget`. `picks`: for each problem (gain, cost) of its picks in order.

    Where gains of problems compare, the picks of all problems with the most gain per cost are paid, and each problem gets what
    its own ones cost. A rest is shared by the problems that have any pick, as is all of it where gains do not compare: each
    gets as often as another what its first pick costs, and the first ones once more.
    """
    costs = [0.0] * len(picks)
    left = budget
    if comparable:
        every = [
            (-gain / cost, number, place, cost)
            for number, of_problem in enumerate(picks)
            for place, (gain, cost) in enumerate(of_problem)
        ]
        for _, number, _, cost in sorted(every):
            if cost > left:
                break
            costs[number] += cost
            left -= cost
    shares = {number: of_problem[0][1] for number, of_problem in enumerate(picks) if of_problem}
    times = left // sum(shares.values()) if shares else 0
    left -= times * sum(shares.values())
    for number, share in shares.items():
        more = share <= left
        costs[number] += (times + more) * share
        left -= more * share
    for number in islice(shares, 1):
        costs[number] += left
    return [int(cost) for cost in costs]
