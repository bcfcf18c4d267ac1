"""The part of a tree that a reader sees first: its nodes with the most rollouts. Pure."""

import heapq

from pipeline.trees.tree import RolloutTree


def most_counted(tree: RolloutTree, most: int) -> list[int]:
    """The places of at most `most` nodes, the bare problem first, in the order of the tree. None is without its parent: of the
    nodes after those that are chosen already, the one with the most graded rollouts is next."""
    chosen: list[int] = []
    waiting = [(0, 0)]
    while waiting and len(chosen) < most:
        _, place = heapq.heappop(waiting)
        chosen.append(place)
        for child in tree.nodes[place].children:
            heapq.heappush(waiting, (-tree.nodes[child].graded, child))
    return sorted(chosen)


def by_count(tree: RolloutTree, places: list[int]) -> list[int]:
    """Nodes after one prefix, those with the most graded rollouts first."""
    return sorted(places, key=lambda place: (-tree.nodes[place].graded, place))
