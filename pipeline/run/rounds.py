"""Which rollouts a problem is owed now: its estimator's decisions, each taken when all that was asked for before is in.

After a crash the last round may be there in part. Which part depends on how long completions were, and so on whether they were
right; so that round is decided again from the rounds before it alone, and what it lacks is owed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.choices import EstimatorName
from pipeline.config import EstimatorConfig
from pipeline.estimate.allocation import next_rollouts
from pipeline.estimate.tree import Tree
from pipeline.estimate.trials import NONE, trials_of
from pipeline.records import Fact, Trials
from pipeline.run.goal import towards
from pipeline.run.journal import Journal

UNLIMITED = 1_000_000_000
"""More rollouts per prefix than any chain takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Of a problem's `number`-th round the rollouts that are missing: prefix ids and issue indices."""

    tree: Tree
    number: int
    missing: Sequence[tuple[str, int]]


class Rounds:
    """The rounds of a unit's problems, as its journal has them."""

    def __init__(self, journal: Journal, config: EstimatorConfig) -> None:
        self._journal = journal
        self._config = towards(journal.goal, config)

    def begun(self, trees: Sequence[Tree]) -> list[Round]:
        """What is owed first, whatever the log holds; nothing for a problem that is done."""
        last = {tree: self._last(tree) for tree in trees}
        under_way = [tree for tree in trees if last[tree] >= 0]
        earlier = trials_of(fact for tree in under_way for fact in self._facts(tree) if fact.round < last[tree])
        asked = self._asked(under_way, earlier)
        cut = [
            Round(tree=tree, number=last[tree], missing=missing)
            for tree, more in zip(under_way, asked, strict=True)
            if (missing := self._missing(tree, earlier, more))
        ]
        unfinished = {each.tree for each in cut}
        return cut + self.next([tree for tree in trees if tree not in unfinished])

    def next(self, trees: Sequence[Tree]) -> list[Round]:
        """What is owed to problems all of whose rounds are in; nothing for one that is done."""
        trials = self._journal.trials(prefix for tree in trees for prefix in tree.prefix_ids)
        asked = self._asked(trees, trials)
        return [
            Round(tree=tree, number=self._last(tree) + 1, missing=self._missing(tree, trials, more))
            for tree, more in zip(trees, asked, strict=True)
            if more
        ]

    def undecided(self, trees: Sequence[Tree]) -> int:
        """How many chains the estimator would ask more rollouts for, were there no budget."""
        if self._config.name is not EstimatorName.pooled:
            return 0
        trials = self._journal.trials(prefix for tree in trees for prefix in tree.prefix_ids)
        unlimited = replace(self._config, budget=None)
        asked = next_rollouts(trees, trials, UNLIMITED, unlimited, self._journal.kernel)
        return sum(bool(more) * len(tree.chains) for tree, more in zip(trees, asked, strict=True))

    def _asked(self, trees: Sequence[Tree], trials: Mapping[str, Trials]) -> list[dict[str, int]]:
        return next_rollouts(trees, trials, self._journal.goal.rollouts, self._config, self._journal.kernel)

    def _missing(self, tree: Tree, trials: Mapping[str, Trials], more: Mapping[str, int]) -> list[tuple[str, int]]:
        missing = []
        for prefix in tree.prefix_ids:
            there = {fact.issue_index for fact in self._journal.of_prefix(prefix)}
            wanted = len(trials.get(prefix, NONE).outcomes) + more.get(prefix, 0)
            upto = max(wanted, max(there, default=-1) + 1)
            missing += [(prefix, issue) for issue in range(upto) if issue not in there]
        return missing

    def _facts(self, tree: Tree) -> list[Fact]:
        return [fact for prefix in tree.prefix_ids for fact in self._journal.of_prefix(prefix)]

    def _last(self, tree: Tree) -> int:
        return max((fact.round for fact in self._facts(tree)), default=-1)
