"""The whole chains of a tree of the oracle."""

from collections.abc import Iterator
from typing import NamedTuple

from pipeline.core.records import Problem
from pipeline.engines.oracle_tree import Path, Tree


class Leaf(NamedTuple):
    """A whole chain: its branches, its probability, whether it is right, and the answer that it states."""

    path: Path
    probability: float
    right: bool
    answer: str


def all_leaves(tree: Tree, problem: Problem, path: Path = (), probability: float = 1.0) -> Iterator[Leaf]:
    """All whole chains that begin with `path`, whose probability is given. There may be branching ** depth."""
    children = tree.children(problem.problem_id, path)
    if not children:
        yield Leaf(path, probability, tree.value(problem.problem_id, path) >= 1.0, tree.answer(problem, path))
    for branch, child in enumerate(children):
        yield from all_leaves(tree, problem, (*path, branch), probability * child.probability)
