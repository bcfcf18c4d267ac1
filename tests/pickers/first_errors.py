"""What further tokens are worth in first errors, in the oracle's tree world, where the value of each prefix is known: prefixes
that `grow` promotes, by picker, against chains that `estimator=bisect` labels. No engine and no run directory: the code of
trees, pickers, rounds and of the estimator alone.

A first error is a step after which the value is not above the threshold, where it was above it after all steps before. It is
located where both its ends are measured, the one before as good and the one after as bad. A located edge is *true* if it is a
first error, *later* if both ends are on the sides that were measured but an earlier prefix was bad already, and else *wrong*.
Last steps, which state the answer, do not count: their values are known for nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import NamedTuple

from scipy.stats import binom

from pipeline.config.choices import BudgetUnit
from pipeline.core.records import ChainShape, Trials
from pipeline.engines.oracle_tree import Path
from pipeline.estimators.bisect import labels, rollouts_owed
from pipeline.estimators.settings import BisectConfig
from pipeline.pickers.base import Pick, Picker, Problem
from pipeline.pickers.errors import Errors, locating
from pipeline.pickers.located import Expected
from pipeline.pickers.registry import picker_for
from pipeline.pickers.rounds import MOST_PICKS, allotted, next_picks, problem_of
from pipeline.trees.posterior import MeasuredStep, learned_strength
from pipeline.trees.tree import NO_PARENT, RolloutTree
from tests.pickers.handmade import settings_for
from tests.pickers.simulated import Growing, TreeWorld, prefix_name

TRUE, WRONG, LATER = "true", "wrong", "later"
BISECT = "bisect"
KNOWS = "knows V"
"""Picks as `errors` does with probabilities from exact values: what is lost because values are not known."""
PROBLEMS, ROLLOUTS, CHAINS = 25, 8, 2
"""Of the run that grows: rollouts of the bare problem and of each prefix of its chains."""
_ROUNDING = 1e-9
"""Of values of the world: 0 is seldom exactly 0."""


class Found(NamedTuple):
    """What tokens were spent, and how many edges of each kind they located."""

    tokens: int
    kinds: Counter[str]

    def rate(self) -> float:
        return 1000 * self.kinds[TRUE] / max(1, self.tokens)


def spent(arm: str, world: TreeWorld, threshold: float, budget: int) -> Found:
    """What an arm locates that the run had not located."""
    if arm == BISECT:
        return bisected(world, threshold, budget)
    picker = Knowing(world) if arm == KNOWS else picker_for(settings_for(arm))
    return grown(picker, world, threshold, budget)


class Knowing(Errors):
    """See `KNOWS`."""

    def __init__(self, world: TreeWorld) -> None:
        super().__init__(settings_for("errors"))
        self._world = world

    def picks(self, problem: Problem) -> Iterator[Pick]:
        nodes = problem.tree.nodes
        good, located, clean = [0.0] * len(nodes), [0.0] * len(nodes), [False] * len(nodes)
        for at, node in enumerate(nodes):
            if node.ended:
                continue
            path = self._world.path(problem.tree.problem_id, problem.tree.steps(at))
            value = self._world.tree.value(problem.tree.problem_id, path)
            above = value > problem.threshold + _ROUNDING
            before = at == 0 or clean[node.parent]
            clean[at] = before and above
            if node.issued.graded:
                good[at] = float(node.issued.correct > problem.threshold * node.issued.graded)
            else:
                good[at] = float(
                    binom.sf(int(problem.threshold * problem.rollouts + _ROUNDING), problem.rollouts, value)
                )
            if at and before and not above:
                located[at] = good[node.parent] * (1.0 - good[at])
        return locating(problem, Expected(located, good), self.settings.least_gain)


def measured_run(world: TreeWorld) -> list[Growing]:
    return [Growing(world, each, rollouts=ROLLOUTS, chains=CHAINS) for each in range(PROBLEMS)]


def grown(picker: Picker, world: TreeWorld, threshold: float, budget: int) -> Found:
    """What a growth locates, with the code that decides in a run: budgets are allotted to problems, and spent in rounds."""
    run = measured_run(world)
    strength = learned_strength(step for each in run for step in _steps(each.tree()))
    kinds: Counter[str] = Counter()

    def seen(of: Growing) -> Problem:
        return problem_of(of.tree(), strength=strength, threshold=threshold, rollouts=ROLLOUTS, unit=BudgetUnit.tokens)

    plans = [_plan(picker, seen(each)) for each in run]
    tokens = 0
    for growing, share in zip(run, allotted(plans, budget, comparable=picker.comparable), strict=True):
        begun, before = growing.tokens, located(growing, world, threshold)
        problem = seen(growing)
        while picks := next_picks(picker, problem, share - (growing.tokens - begun)):
            for pick in picks:
                growing.promote(problem.tree, pick.node)
            problem = seen(growing)
        tokens += growing.tokens - begun
        after = located(growing, world, threshold)
        kinds.update(kind for edge, kind in after.items() if edge not in before)
    return Found(tokens, kinds)


def _plan(picker: Picker, problem: Problem) -> list[tuple[float, float]]:
    return [(pick.gain, problem.costs[pick.node]) for pick in islice(picker.picks(problem), MOST_PICKS)]


def _steps(tree: RolloutTree) -> Iterator[MeasuredStep]:
    for node in tree.nodes:
        if node.parent != NO_PARENT:
            before, here = tree.nodes[node.parent].issued, node.issued
            yield MeasuredStep(before.correct, before.graded, here.correct, here.graded)


def located(growing: Growing, world: TreeWorld, threshold: float) -> Mapping[Path, str]:
    """The edges that measured prefixes locate: the prefix that ends with the step, and the kind."""
    good = {
        path: sum(each.verdict == "correct" for each in own) / len(own) > threshold
        for path, own in growing.paths.items()
    }
    return {
        path: _kind(world, growing.problem.problem_id, path, threshold)
        for path in good
        if path and good.get(path[:-1]) and not good[path]
    }


def _kind(world: TreeWorld, problem_id: str, path: Path, threshold: float) -> str:
    *before, after = [world.tree.value(problem_id, path[:at]) > threshold + _ROUNDING for at in range(len(path) + 1)]
    if after or not before[-1]:
        return WRONG
    return TRUE if all(before) else LATER


def bisected(world: TreeWorld, threshold: float, budget: int) -> Found:
    """What `estimator=bisect` locates on chains that are sampled for it, one after the other, each problem for as many tokens.
    The chains are other ones than those of the run, and count with their tokens."""
    kinds: Counter[str] = Counter()
    tokens = 0
    for number in range(PROBLEMS):
        growing = Growing(world, number, rollouts=ROLLOUTS)
        search = _Bisected(world, growing)
        at = CHAINS
        while search.tokens < budget / PROBLEMS:
            search.add(at)
            at += 1
        tokens += search.tokens
        kinds.update(_kind(world, growing.problem.problem_id, path, threshold) for path in search.found)
    return Found(tokens, kinds)


class _Bisected:
    """A problem whose chains are searched. `found`: the prefixes that end with a first error, as labels say."""

    def __init__(self, world: TreeWorld, growing: Growing) -> None:
        self._world, self._problem = world, growing.problem
        self._config = BisectConfig()
        self._trials: dict[str, Trials] = {}
        self.tokens = 0
        self.found: set[Path] = set()

    def add(self, number: int) -> None:
        labelled = self._world.chain(self._problem, number)
        path = self._world.path(self._problem.problem_id, labelled.steps)
        self.tokens += self._world.cost(path)
        shape = ChainShape(prefix_ids=tuple(labelled.prefix_ids), outcome=labelled.outcome)
        paths = {prefix_name(path[:at]): path[:at] for at in range(len(path) + 1)}
        while owed := rollouts_owed(shape, self._trials, ROLLOUTS, self._config):
            for prefix, more in owed.items():
                self._issue(prefix, paths[prefix], more)
        steps = labels(shape, self._trials)
        if 0 in steps and (error := steps.index(0) + 1) < len(path):
            self.found.add(path[:error])

    def _issue(self, prefix: str, path: Path, more: int) -> None:
        old = self._trials.get(prefix, Trials()).outcomes
        own = self._world.drawn(self._problem, path, ROLLOUTS)[len(old) : len(old) + more]
        self.tokens += sum(each.n_tokens for each in own)
        outcomes = tuple(chain(old, (each.verdict == "correct" for each in own)))
        self._trials[prefix] = Trials(outcomes=outcomes, rounds=(len(outcomes),))
