"""Problems with many chains by a policy that repeats itself, so that chains share prefixes and rollouts reproduce steps.

A step is routine, and the value stays, or it leads from v to Beta(2v, 2(1 - v)), rounded at random to a level. A value of 0 or
1 stays. A step has one of a few wordings. A problem's chains are the policy's own and form a tree: equal beginnings are one
prefix. The fewer wordings, the more chains and rollouts take the same step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.core.records import ChainShape, Counts, StepValue, Trials
from pipeline.estimators.labelling import chain_values
from pipeline.estimators.pooled.kernel import PRIOR
from pipeline.estimators.pooled.learning import learn_kernel
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.tree import trees_of
from tests.bench.estimators.cell import USUAL_TARGET, pooled
from tests.bench.synthetic.policy import Floats

SETTINGS = ((1, 0.8), (1, 0.6), (2, 0.8), (4, 0.8))
"""Wordings of a step, and the share of routine steps."""
LEVELS = 20
CONCENTRATION = 2.0
PROBLEMS, CHAINS, STEPS = 120, 16, 6
UNIT = 8
"""Problems of a unit."""
ROLLOUTS = 8
SEED = 5

_Path = tuple[tuple[int, int], ...]
"""The level after each step, and its wording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFigures:
    """`prefixes`: how many. `rollouts`: per prefix. `error_over_claim`: mean squared error over the mean variance that is
    claimed, and its standard error by the jackknife over problems. `covered`: share of values within their interval."""

    wordings: int
    routine: float
    prefixes: int
    rollouts: float
    rmse: float
    error_over_claim: float
    standard_error: float
    covered: float


def trees(wordings: int, routine: float) -> TreeFigures:
    """`pooled` with its default settings on `PROBLEMS` problems."""
    random = np.random.default_rng(SEED)
    problems = [
        SimulatedProblem(str(name), wordings=wordings, routine=routine, random=random) for name in range(PROBLEMS)
    ]
    by_prefix = {prefix: problem for problem in problems for prefix in problem.paths}
    trials: dict[str, Trials] = {}
    kernel, estimator = PRIOR, estimator_for(pooled(USUAL_TARGET))
    found: dict[str, StepValue] = {}
    for start in range(0, PROBLEMS, UNIT):
        chains = [chain for problem in problems[start : start + UNIT] for chain in problem.chains]
        together = trees_of(chains)
        still_open = list(together)
        while still_open:
            owed = estimator.next_rollouts(still_open, trials, ROLLOUTS, kernel)
            for prefix, more in (each for problem_owed in owed for each in problem_owed.items()):
                trials[prefix] = by_prefix[prefix].sample(prefix, trials.get(prefix, Trials()), more, random)
            still_open = [tree for tree, problem_owed in zip(still_open, owed, strict=True) if problem_owed]
        kernel = learn_kernel(kernel, together, trials)
        for chain, values in zip(chains, chain_values(chains, trials, estimator, kernel), strict=True):
            found.update(zip(chain.prefix_ids[:-1], (values.root, *values.steps), strict=False))
    return _figures(wordings, routine, problems, found, trials)


class SimulatedProblem:
    """A problem's chains, and what rollouts of their prefixes come to. `paths`: the steps of each prefix."""

    def __init__(self, name: str, *, wordings: int, routine: float, random: np.random.Generator) -> None:
        self._wordings, self._routine = wordings, routine
        self._first = int(random.integers(1, LEVELS))
        sampled = [self._complete((), random) for _ in range(CHAINS)]
        prefixes = sorted({path[:length] for path, _ in sampled for length in range(STEPS)}, key=len)
        self._ids = {path: f"{name}:{number}" for number, path in enumerate(prefixes)}
        self.paths: Mapping[str, _Path] = {prefix: path for path, prefix in self._ids.items()}
        self.chains = [
            ChainShape(
                prefix_ids=(*(self._ids[path[:length]] for length in range(STEPS)), f"{name}:end{number}"),
                outcome=right,
                prices=(*(float(STEPS - length) for length in range(STEPS)), 1.0),
            )
            for number, (path, right) in enumerate(sampled)
        ]

    def value(self, prefix: str) -> float:
        return self._level(self.paths[prefix]) / LEVELS

    def sample(self, prefix: str, before: Trials, more: int, random: np.random.Generator) -> Trials:
        """`before` with `more` rollouts of a prefix."""
        drawn = [self._complete(self.paths[prefix], random) for _ in range(more)]
        outcomes = (*before.outcomes, *(right for _, right in drawn))
        return Trials(
            outcomes=outcomes,
            rounds=(*before.rounds, more),
            reached=(*before.reached, *(self._reached(path, len(self.paths[prefix])) for path, _ in drawn)),
            counts=Counts(correct=sum(map(bool, outcomes)), graded=len(outcomes), tokens=len(outcomes)),
        )

    def _complete(self, path: _Path, random: np.random.Generator) -> tuple[_Path, bool]:
        while len(path) < STEPS - 1:
            path = (*path, (self._next(self._level(path), random), int(random.integers(self._wordings))))
        return path, bool(random.random() < self._level(path) / LEVELS)

    def _level(self, path: _Path) -> int:
        return path[-1][0] if path else self._first

    def _next(self, level: int, random: np.random.Generator) -> int:
        if random.random() < self._routine or not 0 < level < LEVELS:
            return level
        share = level / LEVELS
        exact = random.beta(share * CONCENTRATION, (1 - share) * CONCENTRATION) * LEVELS
        return int(exact) + int(random.random() < exact - int(exact))

    def _reached(self, path: _Path, length: int) -> str | None:
        known = [self._ids[path[:more]] for more in range(length + 1, STEPS) if path[:more] in self._ids]
        return known[-1] if known else None


def _figures(
    wordings: int,
    routine: float,
    problems: Sequence[SimulatedProblem],
    found: Mapping[str, StepValue],
    trials: Mapping[str, Trials],
) -> TreeFigures:
    order = [(number, prefix) for number, problem in enumerate(problems) for prefix in problem.paths]
    truth = np.array([problems[number].value(prefix) for number, prefix in order])
    said = [(each.value, each.value_sd, each.low, each.high) for each in (found[prefix] for _, prefix in order)]
    value, sd, low, high = np.array(said, dtype=np.float64).T
    numbers = np.array([number for number, _ in order])
    errors = np.bincount(numbers, (value - truth) ** 2)
    claims = np.bincount(numbers, sd**2)
    without: Floats = (errors.sum() - errors) / (claims.sum() - claims)
    return TreeFigures(
        wordings=wordings,
        routine=routine,
        prefixes=len(found),
        rollouts=sum(len(each.outcomes) for each in trials.values()) / len(found),
        rmse=float(np.sqrt(errors.sum() / len(found))),
        error_over_claim=float(errors.sum() / claims.sum()),
        standard_error=float(np.sqrt((PROBLEMS - 1) / PROBLEMS * ((without - without.mean()) ** 2).sum())),
        covered=float(((low <= truth) & (truth <= high)).mean()),
    )


def trees_table(found: Sequence[TreeFigures]) -> Iterator[str]:
    yield f"{PROBLEMS} problems with {CHAINS} chains of {STEPS} steps each, which share prefixes; pooled, default settings"
    yield (
        f"  {'wordings':>8}{'routine':>9}{'prefixes':>10}{'rollouts each':>15}{'RMSE':>7}{'error/claim':>13}{'+-':>6}"
        f"{'covered':>9}"
    )
    for each in found:
        yield (
            f"  {each.wordings:>8}{each.routine:>9.0%}{each.prefixes:>10,}{each.rollouts:>15.1f}{each.rmse:>7.3f}"
            f"{each.error_over_claim:>13.2f}{each.standard_error:>6.2f}{each.covered:>9.1%}"
        )
