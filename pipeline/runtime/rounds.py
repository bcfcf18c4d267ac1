"""Determines which rollouts each problem needs next, and tracks the rollouts in progress.

The estimator decides what a problem needs, each time after all rollouts that it requested before have finished.

After a crash, the last round may be incomplete. Which of its rollouts are missing depends on the length of the completions, and
therefore on whether they are correct. So the estimator decides that round again from the earlier rounds alone, and the missing
rollouts are sampled. The rounds of a whole unit are complete: rollouts for a later, larger target form a new round.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.core.records import ChainShape, Promotion, Request, RolloutOutcome, Trials
from pipeline.estimators.base import MANY, Budget, Estimator
from pipeline.estimators.tree import NONE, Tree, tree_of, trials_of
from pipeline.runtime.problem_budget import (
    Cap,
    estimated_costs,
    level_budget,
    scaled_budget,
    total_cost,
    usual_cap,
    within,
)
from pipeline.runtime.rollout_log import RolloutLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The missing rollouts of a problem's `number`-th round, as pairs of prefix id and issue index."""

    tree: Tree
    number: int
    missing: Sequence[tuple[str, int]]


class Rounds:
    """The rounds of a unit's problems (`trees`), from the unit's log."""

    def __init__(self, log: RolloutLog, trees: Sequence[Tree], estimator: Estimator) -> None:
        self._log = log
        self._trees = trees
        self._prefixes = {prefix for tree in trees for prefix in tree.prefix_ids}
        self._estimator = scaled_budget(estimator, log.unit_target)
        self._budget = self._estimator.budget
        self._limit = self._limited()
        budget = self._budget
        self._caps = {} if budget is None else {tree: self._cap(tree, budget) for tree in trees}

    def next_rounds(self) -> list[Round]:
        """The rounds to sample first, for any content of the log. A problem that is done has no round."""
        last = {tree: self._last(tree) for tree in self._trees}
        under_way = [tree for tree in self._trees if last[tree] >= 0 and not self._settled(tree, last[tree])]
        earlier = trials_of(
            outcome for tree in under_way for outcome in self._outcomes(tree) if outcome.round < last[tree]
        )
        asked = self._asked(under_way, earlier)
        cut = [
            Round(tree=tree, number=last[tree], missing=missing)
            for tree, more in zip(under_way, asked, strict=True)
            if (missing := self._missing(tree, earlier, more))
        ]
        unfinished = {each.tree for each in cut}
        return cut + self.next([tree for tree in self._trees if tree not in unfinished])

    def next(self, trees: Sequence[Tree]) -> list[Round]:
        """The next rounds of problems whose rounds are all complete. A problem that is done has no round."""
        trials = self._trials(trees)
        asked = self._asked(trees, trials)
        # A fixed number of rollouts is a single round, also if it was raised later, because no outcome influenced it.
        fixed = self._estimator.one_round
        return [
            Round(tree=tree, number=0 if fixed else self._last(tree) + 1, missing=self._missing(tree, trials, more))
            for tree, more in zip(trees, asked, strict=True)
            if more
        ]

    def is_finished(self, prefix_id: str) -> bool:
        """Whether further rollouts of a prefix no longer count. Only for an estimator that `stops_early`. The estimator decides
        nothing about a promoted prefix: all of its rollouts count."""
        return prefix_id in self._prefixes and self._estimator.is_finished(
            self._log.trials([prefix_id]).get(prefix_id, NONE)
        )

    def n_spent(self) -> int:
        """Number of chains for which the estimator would request more rollouts without a budget."""
        return sum(map(sum, self._open()))

    def _open(self) -> list[list[bool]]:
        """For each chain of each tree, whether the estimator would request more rollouts for one of its prefixes without a
        budget."""
        if self._budget is None:
            return [[False] * len(tree.chains) for tree in self._trees]
        budgeted = self._log.unit_target.budget_unit
        unlimited = self._estimator.with_budget(MANY, self._budget.unit) if budgeted else self._estimator
        trials = self._trials(self._trees)
        asked = unlimited.next_rollouts(self._trees, trials, MANY, self._log.state)
        return [
            [any(tree.prefix_ids[node] in more for node in path) for path in tree.paths]
            for tree, more in zip(self._trees, asked, strict=True)
        ]

    def _limited(self) -> int | None:
        """The limit per chain if the unit has a share of the run's budget, else None.

        All chains share the unit's budget equally until the unit has been whole once. After that, only the chains that are not
        done share what is left.
        """
        total, budget = self._log.unit_target.unit_budget, self._budget
        if total is None or budget is None:
            return None
        chains = [cost for tree in self._trees for cost in self._costs(tree, budget)]
        if not self._log.settled:
            return level_budget(total, chains)
        still_open = [each for tree in self._open() for each in tree]
        done = sum(cost for cost, each in zip(chains, still_open, strict=True) if not each)
        return level_budget(total - done, [cost for cost, each in zip(chains, still_open, strict=True) if each])

    def _cap(self, tree: Tree, budget: Budget) -> Cap:
        """The limit of a problem: its budget, or without one the cost of a fixed number of rollouts for each prefix."""
        if self._limit is None:
            return usual_cap(tree, self._log.unit_target.rollouts, budget)
        limit = self._limit if budget.chain is None else min(budget.chain, self._limit)
        if not self._log.settled:
            return Cap(most=limit * len(tree.chains), unit=budget.unit)
        return Cap(most=total_cost(self._costs(tree, budget), limit), unit=budget.unit)

    def _costs(self, tree: Tree, budget: Budget) -> list[float]:
        return estimated_costs(tree, self._trials([tree]), budget.unit)

    def _asked(self, trees: Sequence[Tree], trials: Mapping[str, Trials]) -> list[dict[str, int]]:
        estimator, budget = self._estimator, self._budget
        if self._limit is not None and budget is not None:
            if not self._limit:
                return [{} for _ in trees]
            estimator = estimator.with_budget(min(self._limit, budget.chain or self._limit), budget.unit)
        asked = estimator.next_rollouts(trees, trials, self._log.unit_target.rollouts, self._log.state)
        if budget is None:
            return asked
        return [within(tree, trials, more, self._caps[tree]) for tree, more in zip(trees, asked, strict=True)]

    def _trials(self, trees: Sequence[Tree]) -> dict[str, Trials]:
        return self._log.trials(prefix for tree in trees for prefix in tree.prefix_ids)

    def _missing(self, tree: Tree, trials: Mapping[str, Trials], more: Mapping[str, int]) -> list[tuple[str, int]]:
        missing = []
        for prefix in tree.prefix_ids:
            there = {outcome.issue_index for outcome in self._log.of_prefix(prefix)}
            wanted = len(trials.get(prefix, NONE).outcomes) + more.get(prefix, 0)
            upto = max(wanted, max(there, default=-1) + 1)
            missing += [(prefix, issue) for issue in range(upto) if issue not in there]
        return missing

    def _outcomes(self, tree: Tree) -> list[RolloutOutcome]:
        return [outcome for prefix in tree.prefix_ids for outcome in self._log.of_prefix(prefix)]

    def _settled(self, tree: Tree, number: int) -> bool:
        """Whether the record of a whole unit names all existing rollouts of a round. The round is then complete."""
        settled = self._log.settled
        return all(
            (outcome.prefix_id, outcome.issue_index) in settled
            for outcome in self._outcomes(tree)
            if outcome.round == number
        )

    def _last(self, tree: Tree) -> int:
        return max((outcome.round for outcome in self._outcomes(tree)), default=-1)


def grown_rounds(grown: Mapping[str, Promotion], log: RolloutLog) -> list[Round]:
    """The rollouts that promoted prefixes lack, which `grow` decided and no estimator: one round for each of them. `grown`: the
    promotions by prefix id."""
    found = []
    for prefix_id, promotion in grown.items():
        there = {outcome.issue_index for outcome in log.of_prefix(prefix_id)}
        missing = [(prefix_id, issue) for issue in range(promotion.rollouts) if issue not in there]
        if missing:
            alone = tree_of([ChainShape(prefix_ids=(prefix_id,), outcome=None)])
            found.append(Round(tree=alone, number=0, missing=missing))
    return found


class Arrivals:
    """Tracks the rollouts in progress of each prefix, and the problems whose last round is complete.

    `expect` announces rounds, `take` reports finished rollouts.
    """

    def __init__(self) -> None:
        self._tree_of: dict[str, Tree] = {}
        self._left: dict[Tree, int] = {}
        self._under_way: dict[str, set[int]] = {}
        self._complete: list[Tree] = []
        self._some = asyncio.Event()

    def expect(self, rounds: Iterable[Round]) -> None:
        for each in rounds:
            self._left[each.tree] = len(each.missing)
            for prefix, issue in each.missing:
                self._tree_of[prefix] = each.tree
                self._under_way.setdefault(prefix, set()).add(issue)

    def take(self, request: Request) -> None:
        prefix_id = request.prefix.prefix_id
        tree = self._tree_of[prefix_id]
        self._under_way[prefix_id].discard(request.issue_index)
        self._left[tree] -= 1
        if not self._left[tree]:
            self._complete.append(tree)
            self._some.set()

    def under_way(self, prefix_id: str) -> list[int]:
        """Issue indices of a prefix's rollouts that have not finished."""
        return sorted(self._under_way.get(prefix_id, ()))

    @property
    def any_complete(self) -> bool:
        return bool(self._complete)

    def complete(self) -> list[Tree]:
        """The problems whose last round was completed since the last call."""
        self._some.clear()
        complete, self._complete = self._complete, []
        return complete

    async def wait(self) -> None:
        """Return as soon as the round of any problem is complete."""
        await self._some.wait()
