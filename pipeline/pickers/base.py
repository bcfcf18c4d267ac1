"""The interface of a picker: which nodes of a problem's rollout tree are measured next, given what is known of them.

A picker is pure. Its picks follow from the tree alone, not from the order in which rollouts came, and it decides them before
any outcome of their rollouts is known. It gives them one after the other, and each next one takes the earlier ones for
measured: a rollout that was asked for counts as if it came out as the posterior mean says.

    def picks(self, problem: Problem) -> Iterator[Pick]:
        for node in problem.candidates:
            yield Pick(node, gain=...)
"""

import math
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Protocol

from pipeline.config.grow import PickerConfig
from pipeline.core.errors import PluginError
from pipeline.estimators.tree import Floats
from pipeline.pickers.registry import PICKERS
from pipeline.trees.posterior import Posterior, sides
from pipeline.trees.tree import RolloutTree


class Pick(NamedTuple):
    """A node to measure, and what that is worth, in any unit that is the same for all problems of a run."""

    node: int
    gain: float


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What a picker knows of a problem. Lists have an entry for each node of the tree.

    `posteriors`: of values. `costs`: what it costs to measure a node, in the unit of the budget. `measured`: rollouts were
    issued at it, or its chain has ended with a known outcome. `rollouts`: as many are issued at a node that is picked.
    `threshold`: labels of values above it are good; 0 if one correct rollout is enough. `strength`: see `trees.posterior`.
    """

    tree: RolloutTree
    posteriors: Sequence[Posterior]
    costs: Sequence[float]
    measured: Sequence[bool]
    rollouts: int
    threshold: float
    strength: float

    @property
    def boundary(self) -> float:
        """Between values that are good and those that are bad: the threshold, but at least 1 / (2 `rollouts`), because the
        rollouts cannot tell a smaller value from 0."""
        return max(self.threshold, 0.5 / self.rollouts)

    @cached_property
    def sides(self) -> Floats:
        """What each posterior says of both sides of the boundary: [nodes, 4], see `trees.posterior.sides`."""
        return sides(self.posteriors, self.boundary)

    @cached_property
    def above(self) -> list[float]:
        """P(V > boundary) of each node."""
        found: list[float] = self.sides[:, 0].tolist()
        return found

    @cached_property
    def candidates(self) -> list[int]:
        """The nodes that can be picked: a rollout wrote them, they are not measured, and the chain goes on after them."""
        return [
            at
            for at, node in enumerate(self.tree.nodes)
            if node.source is not None and not node.ended and not self.measured[at]
        ]

    @cached_property
    def candidate_set(self) -> frozenset[int]:
        """The candidates, to ask whether a node is one."""
        return frozenset(self.candidates)


class Picker(Protocol):
    """One picker with its settings. An implementation defines `picks`."""

    Config: ClassVar[type[PickerConfig]] = PickerConfig
    """Its settings: a subclass of `PickerConfig` whose `pick` is the picker's name."""
    comparable: bool = True
    """Whether gains of different problems compare. If not, each problem gets the same share of the budget."""

    settings: PickerConfig

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def picks(self, problem: Problem) -> Iterator[Pick]:
        """The nodes to measure, the best first, each once. The caller takes as many as it can pay; it may ask again later, when
        these are measured."""
        ...


class CheckedPicker(Picker):
    """A picker that is a plug-in. It works while its picks are taken, so each of them is guarded, and not the call alone."""

    def __init__(self, inner: Picker, settings: PickerConfig) -> None:
        super().__init__(settings)
        self._inner = inner
        self.comparable = inner.comparable

    def picks(self, problem: Problem) -> Iterator[Pick]:
        name, taken = self.settings.pick, set[int]()
        with PICKERS.blame(name, "picks"):
            found = iter(self._inner.picks(problem))
        while True:
            with PICKERS.blame(name, "picks"):
                try:
                    pick = next(found)
                except StopIteration:
                    return
                wrong = wrong_pick(pick, problem, taken)
            if wrong:
                raise PluginError(f"picker {name} of {PICKERS.plugin(name)} failed in picks: {wrong}")
            taken.add(pick.node)
            yield pick


def wrong_pick(found: Any, problem: Problem, taken: Collection[int] = ()) -> str:
    """What is wrong with a pick, or an empty text. `taken`: the nodes of earlier picks."""
    node: Any = found.node if isinstance(found, Pick) else None
    if not isinstance(node, Integral):
        return f"it must yield a Pick of a whole number and a gain, but yielded {found!r:.200}"
    if node not in problem.candidate_set:
        return f"it picks node {node}, which is no candidate"
    if node in taken:
        return f"it picks node {node} twice"
    gain: Any = found.gain
    if not isinstance(gain, Real) or not 0 <= float(gain) < math.inf:
        return f"it says that a pick has the gain {gain!r:.60}"
    return ""
