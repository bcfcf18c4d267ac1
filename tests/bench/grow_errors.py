"""What further tokens are worth in first errors, in the oracle's tree world, where the value of each prefix is known: prefixes
that `grow` promotes, by picker, against chains that `estimator=bisect` labels. No engine and no run directory: the code of
trees, pickers, rounds and of the estimator alone (`tests.pickers.simulated`).

A first error is a step after which the value is not above the threshold, where it was above it after all steps before. It is
located where both its ends are measured, the one before as good and the one after as bad. A located edge is *true* if it is a
first error, *later* if both ends are on the sides that were measured but an earlier prefix was bad already, and else *wrong*.
Last steps, which state the answer, do not count: their values are known for nothing.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

from scipy.stats import binom

from pipeline.config.choices import BudgetUnit
from pipeline.config.oracle_world import World, WorldSettings
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

PICKERS = ("errors", "pairs", "uncertain", "omegaprm")
TRUE, WRONG, LATER = "true", "wrong", "later"
BISECT = "bisect"
KNOWS = "knows V"
"""Picks as `errors` does with probabilities from exact values: what is lost because values are not known."""
SEED = 1
_ROUNDING = 1e-9
"""Of values of the world: 0 is seldom exactly 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A run that grows: `rollouts` of the bare problem and of each prefix of `chains` chains. `shares`: what growths cost, as
    shares of what the run had cost."""

    world: WorldSettings
    problems: int
    thresholds: Sequence[float] = (0.5, 0.1)
    rollouts: int = 8
    chains: int = 2
    shares: Sequence[float] = (0.25, 0.5, 1.0)


_DECISIVE = WorldSettings(world=World.tree, depth=6, branching=3, spread=1.0, seed=SEED)
_DRIFT = WorldSettings(world=World.tree, depth=8, branching=4, spread=0.35, seed=SEED)
_DEEP = WorldSettings(world=World.tree, depth=16, branching=8, spread=0.6, seed=SEED)
SETTINGS = {
    "decisive": Setting(world=_DECISIVE, problems=100, thresholds=(0.5, 0.1, 0.0)),
    "decisive, N=16": Setting(world=_DECISIVE, problems=60, rollouts=16),
    "drift": Setting(world=_DRIFT, problems=40),
    "deep, no chain": Setting(world=_DEEP, problems=60, chains=0, shares=(1.0, 2.0, 4.0)),
}
"""Worlds whose steps decide much, or little, and one of long chains that share few steps, where nothing is measured but the
bare problems."""


class Found(NamedTuple):
    """What tokens were spent, and how many edges of each kind they located."""

    tokens: int
    kinds: Counter[str]

    def rate(self) -> float:
        """True ones for 1,000 tokens."""
        return 1000 * self.kinds[TRUE] / max(1, self.tokens)


def grow_errors() -> None:
    for name, setting in SETTINGS.items():
        for threshold in setting.thresholds:
            for line in lines(name, setting, threshold):
                print(line, flush=True)


def lines(name: str, setting: Setting, threshold: float) -> Iterator[str]:
    begin = time.process_time()
    world = TreeWorld(setting.world)
    base = sum(each.tokens for each in _run(world, setting))
    found = {
        arm: [spent(arm, world, setting, threshold, int(base * share)) for share in setting.shares]
        for arm in (*PICKERS, BISECT, KNOWS)
    }
    yield (
        f"\ngrow-errors: {name}, threshold {threshold}, N={setting.rollouts}, {setting.problems} problems, {base:,} tokens "
        f"before, {time.process_time() - begin:.0f} s of processor time"
    )
    yield "true first errors (wrong, later) / tokens spent; true ones for 1,000 tokens, by those of omegaprm and bisect"
    yield "".join(f"| {each} " for each in ("", *(f"{base * share:,.0f} tokens" for share in setting.shares)))
    for arm, at in found.items():
        cells = (
            f"{each.kinds[TRUE]} ({each.kinds[WRONG]}, {each.kinds[LATER]}) / {each.tokens:,}; {each.rate():.2f}: "
            f"{_times(each, other)}, {_times(each, bisect)}"
            for each, other, bisect in zip(at, found["omegaprm"], found[BISECT], strict=True)
        )
        yield "".join(f"| {each} " for each in (arm, *cells))


def _times(one: Found, other: Found) -> str:
    return f"{one.rate() / other.rate():.2f}" if other.kinds[TRUE] else "-"


def spent(arm: str, world: TreeWorld, setting: Setting, threshold: float, budget: int) -> Found:
    """What an arm locates that the run had not located."""
    if arm == BISECT:
        return bisected(world, setting, threshold, budget)
    picker = Knowing(world) if arm == KNOWS else picker_for(settings_for(arm))
    return grown(picker, world, setting, threshold, budget)


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


def _run(world: TreeWorld, setting: Setting) -> list[Growing]:
    return [Growing(world, each, rollouts=setting.rollouts, chains=setting.chains) for each in range(setting.problems)]


def grown(picker: Picker, world: TreeWorld, setting: Setting, threshold: float, budget: int) -> Found:
    """What a growth locates, with the code that decides in a run: budgets are allotted to problems, and spent in rounds."""
    run = _run(world, setting)
    strength = learned_strength(step for each in run for step in _steps(each.tree()))
    kinds: Counter[str] = Counter()

    def seen(of: Growing) -> Problem:
        return problem_of(
            of.tree(), strength=strength, threshold=threshold, rollouts=setting.rollouts, unit=BudgetUnit.tokens
        )

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


def bisected(world: TreeWorld, setting: Setting, threshold: float, budget: int) -> Found:
    """What `estimator=bisect` locates on chains that are sampled for it, one after the other, each problem for as many tokens.
    The chains are other ones than those of the run, and count with their tokens."""
    kinds: Counter[str] = Counter()
    tokens = 0
    for number in range(setting.problems):
        growing = Growing(world, number, rollouts=setting.rollouts)
        search = _Bisected(world, growing, setting)
        at = setting.chains
        while search.tokens < budget / setting.problems:
            search.add(at)
            at += 1
        tokens += search.tokens
        kinds.update(_kind(world, growing.problem.problem_id, path, threshold) for path in search.found)
    return Found(tokens, kinds)


class _Bisected:
    """A problem whose chains are searched. `found`: the prefixes that end with a first error, as labels say."""

    def __init__(self, world: TreeWorld, growing: Growing, setting: Setting) -> None:
        self._world, self._problem, self._setting = world, growing.problem, setting
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
        while owed := rollouts_owed(shape, self._trials, self._setting.rollouts, self._config):
            for prefix, more in owed.items():
                self._issue(prefix, paths[prefix], more)
        steps = labels(shape, self._trials)
        if 0 in steps and (error := steps.index(0) + 1) < len(path):
            self.found.add(path[:error])

    def _issue(self, prefix: str, path: Path, more: int) -> None:
        old = self._trials.get(prefix, Trials()).outcomes
        own = self._world.drawn(self._problem, path, self._setting.rollouts)[len(old) : len(old) + more]
        self.tokens += sum(each.n_tokens for each in own)
        outcomes = tuple(chain(old, (each.verdict == "correct" for each in own)))
        self._trials[prefix] = Trials(outcomes=outcomes, rounds=(len(outcomes),))
