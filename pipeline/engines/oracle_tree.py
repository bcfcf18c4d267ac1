"""The tree world of the oracle: a finite random tree of steps for each problem, with the exact value of every prefix. Pure.

The tree is made from the root on. A node of value V has `branching` children with probabilities p and values v, drawn at random
so that the mean of the children, sum p v, is V. A last step is right (1) or wrong (0), and the right ones have the probability
V together. So V is P(right answer | prefix) of a policy that draws children by their probabilities, and no sum over the tree is
needed to know it. Everything follows from the seed, the `Shape`, the problem's id and the branches taken; the same node always
is the same.

A step is one line that names its branch, such as `Step 2: branch c....`, so that a prefix is read back from its text. The last
one states the answer: `Step 6: branch b. The answer is 17.` Wrong chains of a problem agree on one wrong answer half of the
time, so that a vote can be lost.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.core.records import Problem

Path = tuple[int, ...]
"""The branches from the root to a node, each counted from 0."""

_STEP = re.compile(r"Step ([1-9][0-9]?): branch ([a-z])\.+( The answer is .+\.)?")
_WHOLE = re.compile(r"-?[0-9,]{0,16}[0-9]")
_WRONG_WORDS = ("none of these", "something else", "neither of them", "an unknown one", "no such thing", "all of them")
_WRONG_ANSWERS = 4
_COMMON = 0.5
"""Share of the wrong last steps that state the problem's common wrong answer."""
_LEAST_WEIGHT = 0.25
"""No child is less than a fifth as probable as another one, except last steps."""
_REMEMBERED_NODES = 65_536
_TYPICAL_PROBLEMS = 2048
_UNIT = 1 << 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """How the values of a world differ, and how its trees grow.

    `spread`: the largest difference that a step makes, except the last one; in the flat world, between a prefix and its
    problem. `depth`: steps of the longest chain. `branching`: steps that may follow a prefix, up to 26. `mean`: that of the
    values of bare problems, which are like u ** (1 / mean - 1) with u uniform. `early`: probability that the step after a
    prefix is the last one although the tree is deeper.
    """

    spread: float = 0.35
    depth: int = 6
    branching: int = 3
    mean: float = 0.5
    early: float = 0.0


USUAL = Shape()


class Child(NamedTuple):
    """A step that may follow a prefix: its probability, its value, and whether it is the last step of the chain."""

    probability: float
    value: float
    last: bool


@dataclass(slots=True)
class _Node:
    """`children`: empty after a last step."""

    value: float
    children: tuple[Child, ...]


class Tree:
    """The trees of all problems of one world. See the module.

    `width`: least number of bytes of the text of an inner step, with its line end.
    """

    def __init__(self, seed: int = 0, shape: Shape = USUAL, width: int = 0) -> None:
        self._seed = seed
        self._shape = shape
        self._width = width
        self._nodes: dict[tuple[str, Path], _Node] = {}

    def value(self, problem_id: str, path: Path = ()) -> float:
        """P(right answer) after the steps of `path`, exactly."""
        return self._node(problem_id, path).value

    def children(self, problem_id: str, path: Path = ()) -> tuple[Child, ...]:
        """The steps that may follow `path`. Empty where the chain has ended."""
        return self._node(problem_id, path).children

    def paths_of(self, problem_id: str, texts: Sequence[str]) -> Iterator[Path]:
        """The paths after one, two and more of these steps, whose texts may be trimmed. Ends before the first step that is not
        of this problem's tree."""
        path: Path = ()
        for number, text in enumerate(texts, 1):
            found = _STEP.fullmatch(text.strip())
            branch = ord(found[2]) - ord("a") if found else -1
            children = self.children(problem_id, path)
            if found is None or int(found[1]) != number or branch >= len(children):
                return
            if (found[3] is not None) is not children[branch].last:
                return
            path = (*path, branch)
            yield path

    def path_of(self, problem_id: str, texts: Sequence[str]) -> Path | None:
        """The path of a chain's beginning, or None where a step is not of this problem's tree. See `paths_of`."""
        path: Path = ()
        for path in self.paths_of(problem_id, texts):  # noqa: B007  the last one is wanted
            pass
        return path if len(path) == len(texts) else None

    def path_in(self, problem_id: str, text: str) -> Path | None:
        """The path of a chain's beginning. Blank lines do not count. None as in `path_of`, and where it ends within a step."""
        return self.path_of(problem_id, [line for line in text.split("\n") if line.strip()])

    def drawn(self, problem_id: str, path: Path, key: str) -> Iterator[Path]:
        """How a chain goes on after `path`: the path of each further step, up to the end. The draws depend on `key`."""
        while children := self.children(problem_id, path):
            path = (*path, _chosen(children, uniform(f"{self._seed}:{key}:{len(path)}")))
            yield path

    def step(self, problem: Problem, path: Path) -> str:
        """The text of the last step of `path`. It ends with a line end, unless it states the answer: then the chain ends."""
        text = f"Step {len(path)}: branch {chr(ord('a') + path[-1])}."
        if not self.children(problem.problem_id, path):
            return f"{text} The answer is {self.answer(problem, path)}."
        return f"{text.ljust(self._width - 1, '.')}\n"

    def answer(self, problem: Problem, path: Path) -> str:
        """The answer that the last step of a whole chain states, in one line."""
        if self.value(problem.problem_id, path) >= 1.0:
            return self.right_answer(problem)
        wrong = wrong_answers(self._golds(problem))
        common, which = _uniforms(f"{self._seed}:wrong:{problem.problem_id}:{_written(path)}", 2)
        return wrong[0] if common < _COMMON else wrong[1 + int(which * (len(wrong) - 1))]

    def right_answer(self, problem: Problem) -> str:
        """The first known answer of the problem. Without one, the world makes one up: a whole number."""
        return " ".join(self._golds(problem)[0].split())

    def typical_values(self) -> list[float]:
        """The values of the inner prefixes of many chains, one for each of many made-up problems, as the policy draws them.

        Inner prefixes have a step and do not state an answer. Where no chain has any, the values of whole chains.
        """
        inner, whole = [], []
        for number in range(_TYPICAL_PROBLEMS):
            problem_id = f"typical {number}"
            values = [self.value(problem_id, path) for path in self.drawn(problem_id, (), f"{problem_id} drawn")]
            inner += values[:-1]
            whole += values[-1:]
        return inner or whole

    def _golds(self, problem: Problem) -> tuple[str, ...]:
        if any(gold.strip() for gold in problem.golds[:1]):
            return problem.golds
        return (str(10 + int(89 * uniform(f"{self._seed}:answer:{problem.problem_id}"))),)

    def _node(self, problem_id: str, path: Path) -> _Node:
        """Raises IndexError for a path that the tree does not have."""
        found = self._nodes.get((problem_id, path))
        if found is None:
            if path:
                _, value, ended = self._node(problem_id, path[:-1]).children[path[-1]]
            else:
                value, ended = uniform(f"{self._seed}:{problem_id}") ** (1 / self._shape.mean - 1), False
            found = _Node(value, () if ended else self._children(problem_id, path, value))
            if len(self._nodes) >= _REMEMBERED_NODES:
                self._nodes.clear()
            self._nodes[problem_id, path] = found
        return found

    def _children(self, problem_id: str, path: Path, value: float) -> tuple[Child, ...]:
        count = self._shape.branching
        draws = _uniforms(f"{self._seed}:tree:{problem_id}:{_written(path)}", 2 * count + 2)
        weights, others, size, early = draws[:count], draws[count : 2 * count], draws[-2], draws[-1]
        weights = [_LEAST_WEIGHT + weight for weight in weights]
        if len(path) + 1 >= self._shape.depth or early < self._shape.early:
            return _last_steps(value, weights, others, size)
        return _inner_steps(value, weights, others, size * self._shape.spread)


def _inner_steps(value: float, weights: Sequence[float], others: Sequence[float], size: float) -> tuple[Child, ...]:
    """Children whose values have the mean `value`. One of them differs from it by `size`, or as far as all stay in 0 to 1; none
    by more."""
    total = sum(weights)
    shares = [weight / total for weight in weights]
    mean = sum(share * other for share, other in zip(shares, others, strict=True))
    moves = [other - mean for other in others]
    most, up, down = max(map(abs, moves)), max(moves), -min(moves)
    scale = min(size / most, (1.0 - value) / up, value / down) if most > 0.0 else 0.0
    return tuple(
        Child(share, min(1.0, max(0.0, value + scale * move)), False) for share, move in zip(shares, moves, strict=True)
    )


def _last_steps(value: float, weights: Sequence[float], others: Sequence[float], size: float) -> tuple[Child, ...]:
    """Right and wrong last steps: at least one of each, unless all chains are right, or wrong."""
    count = len(weights)
    number = 0 if value <= 0.0 else count if value >= 1.0 else 1 + int(size * (count - 1))
    right = set(sorted(range(count), key=others.__getitem__)[:number])
    of_right = sum(weights[at] for at in right)
    of_wrong = sum(weights) - of_right
    return tuple(
        Child(value * weight / of_right, 1.0, True)
        if at in right
        else Child((1.0 - value) * weight / of_wrong, 0.0, True)
        for at, weight in enumerate(weights)
    )


def _chosen(children: Sequence[Child], draw: float) -> int:
    """The child in whose share of 0 to 1 the draw falls."""
    for branch, child in enumerate(children):
        draw -= child.probability
        if draw < 0.0:
            return branch
    return max(range(len(children)), key=lambda branch: children[branch].probability)


def wrong_answers(golds: Sequence[str]) -> list[str]:
    """Answers that are not in `golds`: larger numbers where all of them are whole numbers, else words."""
    if golds and all(_WHOLE.fullmatch(gold) for gold in golds):
        largest = max(int(gold.replace(",", "")) for gold in golds)
        return [str(largest + more) for more in range(1, _WRONG_ANSWERS + 1)]
    known = {" ".join(gold.split()).lower() for gold in golds}
    return [word for word in _WRONG_WORDS if word not in known][:_WRONG_ANSWERS]


def draw(key: str) -> int:
    """A number below 2 ** 64 that depends on the text alone."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


def uniform(key: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return draw(key) / _UNIT


def _uniforms(key: str, count: int) -> list[float]:
    """Several numbers in [0, 1) that depend on the text alone."""
    digest = hashlib.shake_128(key.encode()).digest(8 * count)
    return [int.from_bytes(digest[at : at + 8], "little") / _UNIT for at in range(0, len(digest), 8)]


def _written(path: Path) -> str:
    return ".".join(map(str, path))
