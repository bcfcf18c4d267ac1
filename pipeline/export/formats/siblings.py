"""Better and worse siblings of a rollout tree: steps after the same prefix, and which one is worth more.

Siblings are all nodes after a node, whether `labels` has them or not. What is known of each is a posterior, made from all
rollouts through it (`trees.posterior`), or the outcome of a chain that ends with it. A pair needs a probability that its better
step is worth more, because most nodes have few rollouts: of a node with one of one right, the share of right ones says little.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.export.formats.pairs import ROUNDING
from pipeline.trees.posterior import Posterior, probabilities_better
from pipeline.trees.tree import RolloutTree

NO_END = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingPair:
    """Two nodes of a tree with the same parent. `certainty`: P(the value of the better one is larger). `margin`: the difference
    of their posterior means."""

    better: int
    worse: int
    certainty: float
    margin: float


def sibling_pairs(
    tree: RolloutTree, values: Sequence[Posterior], *, certainty: float, margin: float = 0.0
) -> Iterator[list[SiblingPair]]:
    """For each prefix that more than one step follows: the pairs that are so certain and so far apart, those with the largest
    margin first. Of two steps there is one pair at most, also where a chain ends with the same text that another one goes on
    after."""
    for nodes in tree.sibling_sets():
        found: dict[frozenset[str], SiblingPair] = {}
        for pair in sorted(_certain(tree, values, nodes, certainty, margin), key=_order):
            texts = frozenset((tree.nodes[pair.better].text, tree.nodes[pair.worse].text))
            if len(texts) > 1:
                found.setdefault(texts, pair)
        yield list(found.values())


def ends(tree: RolloutTree, *, outcome: bool) -> list[int]:
    """For each node, the end of a chain with this outcome that stands there or below, or NO_END: of several the one that most
    graded rollouts wrote, then the one that came first."""
    best = [NO_END] * len(tree.nodes)

    def order(node: int) -> tuple[int, int]:
        return tree.nodes[node].passed.graded, -node

    # Children stand after their parents.
    for at in range(len(tree.nodes) - 1, -1, -1):
        node = tree.nodes[at]
        known = [best[child] for child in node.children if best[child] != NO_END]
        if node.ended and node.outcome is outcome:
            known.append(at)
        if known:
            best[at] = max(known, key=order)
    return best


def _certain(
    tree: RolloutTree, values: Sequence[Posterior], nodes: Sequence[int], certainty: float, margin: float
) -> Iterator[SiblingPair]:
    better = probabilities_better([values[node] for node in nodes])
    for row, column in np.argwhere(better >= certainty - ROUNDING):
        one, other = nodes[row], nodes[column]
        apart = values[one].mean - values[other].mean
        # A posterior with a long tail can be the larger one more often and have the smaller mean.
        if apart > ROUNDING and apart >= margin - ROUNDING:
            yield SiblingPair(better=one, worse=other, certainty=float(better[row, column]), margin=apart)


def _order(pair: SiblingPair) -> tuple[float, int, int]:
    return -pair.margin, pair.better, pair.worse
