"""Growths in the oracle's tree world, where the value of each prefix is known, without an engine: a fixed log, what a picker
promotes from it in several rounds, and the rollouts of that."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipeline.config.choices import BudgetUnit
from pipeline.core.records import Problem
from pipeline.engines.oracle_tree import Path, Shape, Tree
from pipeline.pickers.base import Picker
from pipeline.pickers.rounds import next_picks, problem_of
from pipeline.trees.tree import NO_LABEL, LabelledSteps, RolloutTree, WrittenRollout, rollout_tree
from tests.pickers.handmade import cut

WORLD = Shape(depth=5, branching=4, spread=1.0)
ROLLOUTS = 8
"""At the bare problem, and at each promoted prefix."""
BUDGET = 64
"""Rollouts of promoted prefixes, of each problem."""
TOKENS_PER_STEP = 10
_THRESHOLD = 0.5


class Promoted(NamedTuple):
    """A promoted prefix: its exact value, its own rollouts that are correct and graded, and those that had passed through it
    when it was promoted."""

    value: float
    correct: int
    graded: int
    passed_correct: int
    passed_graded: int


class TreeWorld:
    """The problems of a world, and what the policy writes for them. A rollout depends on its problem, its prefix and its number
    alone, so different growths see the same ones."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.tree = Tree(seed, shape)
        self._known: dict[tuple[str, Path, int], list[WrittenRollout]] = {}

    def drawn(self, problem: Problem, begin: Path, count: int) -> list[WrittenRollout]:
        found = self._known.get((problem.problem_id, begin, count))
        if found is None:
            rollouts = (self._rollout(problem, begin, number) for number in range(count))
            found = self._known[problem.problem_id, begin, count] = list(rollouts)
        return found

    def chain(self, problem: Problem, number: int) -> LabelledSteps:
        path = list(self.tree.drawn(problem.problem_id, (), f"{problem.problem_id} chain {number}"))[-1]
        steps = [self.tree.step(problem, path[:at]).strip() for at in range(1, len(path) + 1)]
        return _chain(path, steps, outcome=self.tree.value(problem.problem_id, path) >= 1.0)

    def path(self, problem_id: str, steps: Sequence[str]) -> Path:
        path = self.tree.path_of(problem_id, steps)
        assert path is not None
        return path

    def cost(self, path: Path, begin: Path = ()) -> int:
        """Tokens of what was written from `begin` on."""
        return TOKENS_PER_STEP * (len(path) - len(begin))

    def _rollout(self, problem: Problem, begin: Path, number: int) -> WrittenRollout:
        name = prefix_name(begin)
        paths = list(self.tree.drawn(problem.problem_id, begin, f"{problem.problem_id} {name} {number}"))
        return WrittenRollout(
            rollout_id=f"{name} {number}",
            prefix_id=name,
            round=0,
            text="".join(f"{self.tree.step(problem, path).strip()}\n" for path in paths),
            finish="stop",
            verdict="correct" if self.tree.value(problem.problem_id, paths[-1]) >= 1.0 else "incorrect",
            n_tokens=self.cost(paths[-1], begin),
        )


class Growing:
    """A problem whose bare problem has rollouts, as have all prefixes of `chains` chains, and that grows. `tokens`: of all
    rollouts so far. `paths`: the prefixes with rollouts, and these."""

    def __init__(self, world: TreeWorld, number: int, *, rollouts: int = ROLLOUTS, chains: int = 0) -> None:
        self.problem = Problem(problem_id=f"problem {number}", text="?", golds=("1",))
        self.tokens = 0
        self.paths: dict[Path, list[WrittenRollout]] = {}
        self._world = world
        self._rollouts = rollouts
        self._chains = [_chain(()), *(world.chain(self.problem, each) for each in range(chains))]
        self._issue(())
        for chain in self._chains[1:]:
            for at in range(1, len(chain.steps)):
                self._issue(self._path(chain.steps[:at]))

    def tree(self) -> RolloutTree:
        log = [each for own in self.paths.values() for each in own]
        return rollout_tree(self.problem.problem_id, self._chains, log, cut)

    def promote(self, tree: RolloutTree, node: int) -> list[WrittenRollout]:
        steps = tree.steps(node)
        path = self._path(steps)
        self._chains.append(_chain(path, steps))
        self._issue(path)
        return self.paths[path]

    def value(self, tree: RolloutTree, node: int) -> float:
        return self._world.tree.value(self.problem.problem_id, self._path(tree.steps(node)))

    def _path(self, steps: Sequence[str]) -> Path:
        return self._world.path(self.problem.problem_id, steps)

    def _issue(self, path: Path) -> None:
        if path not in self.paths:
            own = self.paths[path] = self._world.drawn(self.problem, path, self._rollouts)
            self.tokens += sum(each.n_tokens for each in own)


class Simulation:
    """Growths of problems, one by one. `rollouts`: how many were drawn."""

    def __init__(self, picker: Picker) -> None:
        self._picker = picker
        self.rollouts = 0

    def grown(self, number: int) -> Iterator[Promoted]:
        growing = Growing(TreeWorld(WORLD), number)
        self.rollouts += ROLLOUTS
        left = BUDGET
        while True:
            tree = growing.tree()
            seen = problem_of(tree, strength=1.0, threshold=_THRESHOLD, rollouts=ROLLOUTS, unit=BudgetUnit.rollouts)
            picks = next_picks(self._picker, seen, left)
            for pick in picks:
                node = tree.nodes[pick.node]
                own = growing.promote(tree, pick.node)
                self.rollouts += len(own)
                left -= len(own)
                yield Promoted(
                    value=growing.value(tree, pick.node),
                    correct=sum(each.verdict == "correct" for each in own),
                    graded=len(own),
                    passed_correct=node.passed.correct,
                    passed_graded=node.passed.graded,
                )
            if not picks:
                return


def _chain(path: Path, steps: Sequence[str] = (), outcome: bool | None = None) -> LabelledSteps:
    return LabelledSteps(
        steps=steps,
        stems=[f"{step}\n" for step in steps],
        prefix_ids=[prefix_name(path[:at]) for at in range(len(path) + 1)],
        labels=[NO_LABEL] * (len(path) + 1),
        outcome=outcome,
        grown=bool(path) and outcome is None,
    )


def prefix_name(path: Path) -> str:
    return "p" + "".join(f".{branch}" for branch in path)


class Bins:
    """Errors of estimates of known values, summed in equal bins of the value. A score is the sum of the errors by its standard
    deviation, which is known where each rollout is a fair trial."""

    def __init__(self, count: int) -> None:
        self._errors = [0.0] * count
        self._variances = [0.0] * count
        self.sizes = [0] * count

    def add(self, value: float, correct: int, graded: int) -> None:
        at = min(len(self.sizes) - 1, int(value * len(self.sizes)))
        self._errors[at] += correct / graded - value
        self._variances[at] += value * (1 - value) / graded
        self.sizes[at] += 1

    def merge(self, other: "Bins") -> None:
        self._errors = [one + two for one, two in zip(self._errors, other._errors, strict=True)]
        self._variances = [one + two for one, two in zip(self._variances, other._variances, strict=True)]
        self.sizes = [one + two for one, two in zip(self.sizes, other.sizes, strict=True)]

    def mean(self) -> float:
        return sum(self._errors) / max(1, sum(self.sizes))

    def means(self) -> list[float]:
        return [error / max(1, size) for error, size in zip(self._errors, self.sizes, strict=True)]

    def errors(self) -> list[float]:
        return [variance**0.5 / max(1, size) for variance, size in zip(self._variances, self.sizes, strict=True)]

    def scores(self) -> list[float]:
        """Of each bin with an estimate that can err."""
        return [
            error / variance**0.5 for error, variance in zip(self._errors, self._variances, strict=True) if variance
        ]

    def score(self) -> float:
        variance = sum(self._variances)
        return float(sum(self._errors) / variance**0.5) if variance else 0.0
