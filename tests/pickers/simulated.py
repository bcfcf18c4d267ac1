"""Growths in the oracle's tree world, where the value of each prefix is known, without an engine: a fixed log, what a picker
promotes from it in several rounds, and the rollouts of that."""

from collections.abc import Iterator
from typing import NamedTuple

from pipeline.config.choices import BudgetUnit
from pipeline.config.oracle_world import World, WorldSettings
from pipeline.core.records import Problem
from pipeline.engines.oracle_tree import Path, Tree
from pipeline.pickers.base import Picker
from pipeline.pickers.rounds import next_picks, problem_of
from pipeline.trees.cut import WrittenStep
from pipeline.trees.tree import NO_LABEL, LabelledSteps, WrittenRollout, rollout_tree

WORLD = WorldSettings(world=World.tree, depth=5, branching=4, spread=1.0)
ROLLOUTS = 8
"""At the bare problem, and at each promoted prefix."""
BUDGET = 64
"""Rollouts of promoted prefixes, of each problem."""
_THRESHOLD = 0.5


class Promoted(NamedTuple):
    """A promoted prefix: its exact value, its own rollouts that are correct and graded, and those that had passed through it
    when it was promoted."""

    value: float
    correct: int
    graded: int
    passed_correct: int
    passed_graded: int


class Simulation:
    """Growths of problems, one by one. `rollouts`: how many were drawn."""

    def __init__(self, picker: Picker, settings: WorldSettings = WORLD) -> None:
        self._picker = picker
        self._tree = Tree(settings)
        self.rollouts = 0

    def grown(self, number: int) -> Iterator[Promoted]:
        """What is promoted of a problem, in several rounds."""
        problem = Problem(problem_id=f"problem {number}", text="?", golds=("1",))
        chains, log = [_chain(())], self._drawn(problem, ())
        texts: dict[Path, str] = {}
        left = BUDGET
        while True:
            tree = rollout_tree(problem.problem_id, chains, log, _lines)
            seen = problem_of(tree, strength=1.0, threshold=_THRESHOLD, rollouts=ROLLOUTS, unit=BudgetUnit.rollouts)
            picks = next_picks(self._picker, seen, left)
            for pick in picks:
                node = tree.nodes[pick.node]
                path = self._tree.path_of(problem.problem_id, tree.steps(pick.node))
                assert path is not None
                texts |= {path[: at + 1]: text for at, text in enumerate(tree.steps(pick.node))}
                chains.append(_chain(path, [texts[path[: at + 1]] for at in range(len(path))]))
                own = self._drawn(problem, path)
                log += own
                left -= len(own)
                yield Promoted(
                    value=self._tree.value(problem.problem_id, path),
                    correct=sum(each.verdict == "correct" for each in own),
                    graded=len(own),
                    passed_correct=node.passed.correct,
                    passed_graded=node.passed.graded,
                )
            if not picks:
                return

    def _drawn(self, problem: Problem, begin: Path) -> list[WrittenRollout]:
        """Rollouts of a prefix."""
        found = []
        name = _name(begin)
        for number in range(ROLLOUTS):
            paths = list(self._tree.drawn(problem.problem_id, begin, f"{problem.problem_id} {name} {number}"))
            right = self._tree.value(problem.problem_id, paths[-1]) >= 1.0
            found.append(
                WrittenRollout(
                    rollout_id=f"{name} {number}",
                    prefix_id=name,
                    round=0,
                    text="".join(f"{self._tree.step(problem, path).strip()}\n" for path in paths),
                    finish="stop",
                    verdict="correct" if right else "incorrect",
                    n_tokens=1,
                )
            )
        self.rollouts += len(found)
        return found


def _chain(path: Path, steps: list[str] | None = None) -> LabelledSteps:
    return LabelledSteps(
        steps=steps or [],
        stems=[f"{step}\n" for step in steps or []],
        prefix_ids=[_name(path[:at]) for at in range(len(path) + 1)],
        labels=[NO_LABEL] * (len(path) + 1),
        outcome=None,
        grown=bool(path),
    )


def _name(path: Path) -> str:
    return "p" + "".join(f".{branch}" for branch in path)


def _lines(_before: str, text: str) -> tuple[WrittenStep, ...]:
    found = []
    end = 0
    for line in text.splitlines(keepends=True):
        end += len(line)
        found.append(WrittenStep(line[:-1], end))
    return tuple(found)


class Bins:
    """Errors of estimates of known values, summed in equal bins of the value. A score is the sum of the errors by its standard
    deviation, which is known where each rollout is a fair trial."""

    def __init__(self, count: int) -> None:
        self._errors = [0.0] * count
        self._variances = [0.0] * count
        self.sizes = [0] * count

    def add(self, value: float, correct: int, graded: int) -> None:
        """Add an estimate, correct / graded."""
        at = min(len(self.sizes) - 1, int(value * len(self.sizes)))
        self._errors[at] += correct / graded - value
        self._variances[at] += value * (1 - value) / graded
        self.sizes[at] += 1

    def means(self) -> list[float]:
        """The mean error of each bin."""
        return [error / max(1, size) for error, size in zip(self._errors, self.sizes, strict=True)]

    def errors(self) -> list[float]:
        """The standard error of each mean."""
        return [variance**0.5 / max(1, size) for variance, size in zip(self._variances, self.sizes, strict=True)]

    def scores(self) -> list[float]:
        """Of each bin with an estimate that can err."""
        return [
            error / variance**0.5 for error, variance in zip(self._errors, self._variances, strict=True) if variance
        ]

    def score(self) -> float:
        """Of all bins together."""
        variance = sum(self._variances)
        return float(sum(self._errors) / variance**0.5) if variance else 0.0
