"""Which rollouts a problem is owed now, and which are under way.

What is owed its estimator decides, each time when all that was asked for before is in.

After a crash the last round may be there in part. Which part depends on how long completions were, and so on whether they were
right; so that round is decided again from the rounds before it alone, and what it lacks is owed. Rounds of a unit that was
whole are there: what is asked for later, with another goal, is a round behind them.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.core.records import Request, RolloutOutcome, Trials
from pipeline.estimators.base import MANY, Budget, Estimator
from pipeline.estimators.tree import NONE, Tree, trials_of
from pipeline.runtime.problem_budget import (
    Cap,
    estimated_costs,
    level_budget,
    scaled_budget,
    total_cost,
    usual_cap,
    within,
)
from pipeline.runtime.unit_buffer import UnitBuffer


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Of a problem's `number`-th round the rollouts that are missing: prefix ids and issue indices."""

    tree: Tree
    number: int
    missing: Sequence[tuple[str, int]]


class Rounds:
    """The rounds of a unit's problems, `trees`, as its journal has them."""

    def __init__(self, buffer: UnitBuffer, trees: Sequence[Tree], estimator: Estimator) -> None:
        self._buffer = buffer
        self._trees = trees
        self._estimator = scaled_budget(estimator, buffer.unit_target)
        self._budget = self._estimator.budget
        self._limit = self._limited()
        budget = self._budget
        self._caps = {} if budget is None else {tree: self._cap(tree, budget) for tree in trees}

    def begun(self) -> list[Round]:
        """What is owed first, whatever the log holds; nothing for a problem that is done."""
        last = {tree: self._last(tree) for tree in self._trees}
        under_way = [tree for tree in self._trees if last[tree] >= 0 and not self._settled(tree, last[tree])]
        earlier = trials_of(
            outcome for tree in under_way for outcome in self._facts(tree) if outcome.round < last[tree]
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
        """What is owed to problems all of whose rounds are in; nothing for one that is done."""
        trials = self._trials(trees)
        asked = self._asked(trees, trials)
        return [
            Round(tree=tree, number=self._next_number(tree), missing=self._missing(tree, trials, more))
            for tree, more in zip(trees, asked, strict=True)
            if more
        ]

    def stopped(self, prefix_id: str) -> bool:
        """Whether what comes in from now on of a prefix does not count, whatever it is; of an estimator that `stops_early`."""
        return self._estimator.stopped(self._buffer.trials([prefix_id]).get(prefix_id, NONE))

    def spent(self) -> int:
        """Chains that the estimator would ask more rollouts for, were there no budget."""
        return sum(map(sum, self._open()))

    def _open(self) -> list[list[bool]]:
        """Of each tree's chains, whether one has a prefix that the estimator would ask more rollouts for."""
        if self._budget is None:
            return [[False] * len(tree.chains) for tree in self._trees]
        budgeted = self._buffer.unit_target.budget_unit
        unlimited = self._estimator.with_budget(MANY, self._budget.unit) if budgeted else self._estimator
        trials = self._trials(self._trees)
        asked = unlimited.next_rollouts(self._trees, trials, MANY, self._buffer.state)
        return [
            [any(tree.prefix_ids[node] in more for node in path) for path in tree.paths]
            for tree, more in zip(self._trees, asked, strict=True)
        ]

    def _limited(self) -> int | None:
        """What a chain may cost, where the unit has a share of the run's budget. All chains share it alike until the unit was
        whole once, and then those whose estimator is not done."""
        total, budget = self._buffer.unit_target.unit_budget, self._budget
        if total is None or budget is None:
            return None
        chains = [cost for tree in self._trees for cost in self._costs(tree, budget)]
        if not self._buffer.settled:
            return level_budget(total, chains)
        still_open = [each for tree in self._open() for each in tree]
        done = sum(cost for cost, each in zip(chains, still_open, strict=True) if not each)
        return level_budget(total - done, [cost for cost, each in zip(chains, still_open, strict=True) if each])

    def _cap(self, tree: Tree, budget: Budget) -> Cap:
        """What a problem may cost, where it has a budget; else what a fixed number of rollouts for each prefix would."""
        if self._limit is None:
            return usual_cap(tree, self._buffer.unit_target.rollouts, budget)
        limit = self._limit if budget.chain is None else min(budget.chain, self._limit)
        if not self._buffer.settled:
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
        asked = estimator.next_rollouts(trees, trials, self._buffer.unit_target.rollouts, self._buffer.state)
        if budget is None:
            return asked
        return [within(tree, trials, more, self._caps[tree]) for tree, more in zip(trees, asked, strict=True)]

    def _trials(self, trees: Sequence[Tree]) -> dict[str, Trials]:
        return self._buffer.trials(prefix for tree in trees for prefix in tree.prefix_ids)

    def _missing(self, tree: Tree, trials: Mapping[str, Trials], more: Mapping[str, int]) -> list[tuple[str, int]]:
        missing = []
        for prefix in tree.prefix_ids:
            there = {outcome.issue_index for outcome in self._buffer.of_prefix(prefix)}
            wanted = len(trials.get(prefix, NONE).outcomes) + more.get(prefix, 0)
            upto = max(wanted, max(there, default=-1) + 1)
            missing += [(prefix, issue) for issue in range(upto) if issue not in there]
        return missing

    def _facts(self, tree: Tree) -> list[RolloutOutcome]:
        return [outcome for prefix in tree.prefix_ids for outcome in self._buffer.of_prefix(prefix)]

    def _settled(self, tree: Tree, number: int) -> bool:
        """Whether the record of a whole unit names what there is of a round: then it is all there."""
        settled = self._buffer.settled
        return all(
            (outcome.prefix_id, outcome.issue_index) in settled
            for outcome in self._facts(tree)
            if outcome.round == number
        )

    def _next_number(self, tree: Tree) -> int:
        """A fixed number of rollouts is one decision, also where it was raised later: no outcome had a say in it."""
        return 0 if self._estimator.one_round else self._last(tree) + 1

    def _last(self, tree: Tree) -> int:
        return max((outcome.round for outcome in self._facts(tree)), default=-1)


class Arrivals:
    """Rollouts that are under way: which of a prefix, and which problems have all that was asked for in their last round.

    Rounds are announced with `expect`, rollouts with `take`.
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
        """Issue indices of a prefix's rollouts that have not come in."""
        return sorted(self._under_way.get(prefix_id, ()))

    @property
    def any_complete(self) -> bool:
        return bool(self._complete)

    def complete(self) -> list[Tree]:
        """The problems whose last round has become complete since the last call."""
        self._some.clear()
        complete, self._complete = self._complete, []
        return complete

    async def wait(self) -> None:
        """Return when a problem's round is complete."""
        await self._some.wait()
