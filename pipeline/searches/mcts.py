"""Monte Carlo tree search with PUCT (Silver et al. 2017), in which scores take the place of a value network.

The nodes of the tree are beginnings of chains; those with equal texts are one. A node's prior is the share that its text has of
the next steps that were sampled after its parent: an estimate of the policy's probability. A node's value Q is the mean of its
own score and of the values of all simulations that went through it, where a missing score counts 0. From node to node, a
simulation follows the largest

    Q + c * prior * sqrt(N of the parent) / N,      c = search.exploration,

where N is 1 plus the number of simulations that went through the node. Simulations of the same wave that have not come back
count as visits with value 0 (virtual loss), so that they spread.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipeline.searches.base import WHOLE, Found, Search, Steps, Task, sample, together
from pipeline.searches.choice import Candidates, Scored, distinct, next_step, rank, scored_after
from pipeline.searches.settings import MctsConfig


@dataclass(slots=True, eq=False)
class _Branch:
    """A node of the tree. `visits` and `total`: how many values were added up, and their sum. `out`: simulations that went
    through it and have not come back. `busy`: one of them samples its next steps. `done`: nothing is left to sample below."""

    scored: Scored
    parent: "_Branch | None"
    prior: float
    visits: int = 1
    total: float = field(init=False)
    out: int = 0
    busy: bool = False
    done: bool = field(init=False)
    children: list["_Branch"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.total = self.scored.score or 0.0
        self.done = self.scored.node.ended

    def up(self) -> Iterator["_Branch"]:
        """The node and those above it."""
        at: _Branch | None = self
        while at is not None:
            yield at
            at = at.parent


_Levels = Sequence[Sequence[Scored]]
"""What a simulation has sampled: next steps of the node that it chose, then of the best of these, and so on."""


class Mcts(Search):
    """n simulations. Each goes down to a node without next steps, samples `width` of them, goes on from the best-scored one in
    the same way, and comes back with the best score of a chain that it ended. With `rollout`, it samples next steps only once,
    and then the rest of the chain from the best one.

    Simulations run in waves of `search.parallel`, fewer where the tree has fewer nodes to go on from. The search ends before n
    simulations where nothing is left to sample. All chains that ended are candidates, and the best-scored one is chosen."""

    Config = MctsConfig
    settings: MctsConfig

    def search(self, task: Task) -> Steps[Found]:
        own = self.settings
        made = Candidates(own)
        root = _Branch(Scored(node=task.root), None, 1.0)
        left = own.n
        while left and not root.done and not made.accepted:
            leaves = self._wave(root, min(left, own.parallel))
            left -= len(leaves)
            found = yield from together([self._simulation(task, leaf.scored) for leaf in leaves])
            for leaf, (levels, ends) in zip(leaves, found, strict=True):
                made.add(ends)
                self._add(leaf, levels, max((end.score or 0.0 for end in ends), default=0.0))
        return made.found()

    def _wave(self, root: _Branch, most: int) -> list[_Branch]:
        """The nodes from which the next simulations go on: at least one."""
        leaves: list[_Branch] = []
        while len(leaves) < most and (leaf := self._leaf(root)) is not None:
            leaf.busy = True
            for at in leaf.up():
                at.out += 1
            leaves.append(leaf)
        return leaves

    def _leaf(self, root: _Branch) -> _Branch | None:
        """The node to which a simulation goes down; None if all are busy."""
        at = root
        while at.children:
            free = [child for child in at.children if not _blocked(child)]
            if not free:
                return None
            curiosity = self.settings.exploration * math.sqrt(at.visits + at.out)
            at = min(free, key=lambda child: _order(child, curiosity))
        return None if at.busy or at.done else at

    def _simulation(self, task: Task, before: Scored) -> Steps[tuple[_Levels, Sequence[Scored]]]:
        """Its levels, and the chains that ended."""
        own = self.settings
        levels, ends = list[list[Scored]](), list[Scored]()
        for _ in range(own.max_steps):
            grown = yield from together([next_step(task, before, draw) for draw in range(own.width)])
            levels.append(grown)
            ends += [each for each in grown if each.node.ended]
            before = min(grown, key=rank)
            if before.node.ended:
                break
            if own.rollout:
                # Draws below `width` are those of next steps.
                nodes = yield from sample(before.node, own.width, WHOLE)
                ends.append((yield from scored_after(before, nodes[-1], task.aggregation)))
                break
        return levels, ends

    def _add(self, leaf: _Branch, levels: _Levels, value: float) -> None:
        """Add to the tree what a simulation has sampled, and its value to the nodes on its way."""
        leaf.busy = False
        for at in leaf.up():
            at.out -= 1
        deepest = leaf
        for number, level in enumerate(levels):
            if number:
                deepest = _same(deepest.children, min(levels[number - 1], key=rank))
            deepest.children = _children(deepest, level)
        for at in deepest.up():
            at.visits += 1
            at.total += value
            at.done = all(child.done for child in at.children)


def _children(parent: _Branch, level: Sequence[Scored]) -> list[_Branch]:
    """The next steps that were sampled after a node. Those with equal texts are one."""
    texts = [(each.node.prefix_id, each.node.ended) for each in level]
    return [
        _Branch(each, parent, texts.count((each.node.prefix_id, each.node.ended)) / len(level))
        for each in distinct(sorted(level, key=rank))
    ]


def _same(children: Sequence[_Branch], best: Scored) -> _Branch:
    (found,) = (child for child in children if child.scored is best)
    return found


def _blocked(branch: _Branch) -> bool:
    """Whether no simulation can go on from a node below or from this one."""
    if branch.done or not branch.out:
        return branch.done
    return all(map(_blocked, branch.children)) if branch.children else branch.busy


def _order(child: _Branch, curiosity: float) -> tuple[float, str]:
    """The smallest comes first."""
    visits = child.visits + child.out
    return (-(child.total + curiosity * child.prior) / visits, child.scored.node.node_id)
