"""The data in the page of a problem's rollout tree, as JSON.

A tree has columns with one entry per node, parents before children. Numbers have three decimals.
"""

from collections.abc import Sequence

from pipeline.analysis.report.embedded import json_text, rounded, shortened
from pipeline.storage.stored_trees import ProblemTree
from pipeline.trees.posterior import posteriors
from pipeline.trees.tree import NO_PARENT, RolloutTree, Tally, TreeNode, most_counted

CHARACTERS = 2_000
"""Of a step's text, at most. The whole text is in the tables."""
MOST_NODES = 5_000
"""Nodes of a tree, at most: more than a reader opens, and as many as a browser draws at once."""
_SHORT = 300
"""Characters of an answer or an id, at most."""
_SOURCES = 5
"""Ids of rows, at most."""
_OUTCOMES = {True: "r", False: "w", None: "o"}


def trees_json(found: Sequence[ProblemTree], strength: float) -> str:
    """The trees of one problem: one for each unit that has it. `strength`: see `trees.posterior`."""
    first = found[0]
    sources = list(dict.fromkeys(name for each in found for name in each.source_ids))
    data = {
        "problem": shortened(first.problem, CHARACTERS),
        "gold": shortened(first.gold_answer, _SHORT),
        "id": first.tree.problem_id,
        "sources": [shortened(name, _SHORT) for name in sources[:_SOURCES]],
        "more": max(0, len(sources) - _SOURCES),
        "trees": [_tree(each.tree, strength) for each in found],
    }
    return json_text(data)


def _tree(tree: RolloutTree, strength: float) -> dict[str, object]:
    kept = most_counted(tree, MOST_NODES)
    places = {old: new for new, old in enumerate(kept)}
    nodes = [tree.nodes[old] for old in kept]
    estimates = posteriors(tree, strength)
    return {
        "parents": [-1 if node.parent == NO_PARENT else places[node.parent] for node in nodes],
        "texts": [shortened(node.text, CHARACTERS) for node in nodes],
        "values": [rounded(node.value) for node in nodes],
        "means": [rounded(estimates[old].mean) for old in kept],
        "spreads": [rounded(node.label.value_sd if node.label else None) for node in nodes],
        "labels": [node.label.label if node.label else None for node in nodes],
        "named": [int(bool(node.prefix_ids)) for node in nodes],
        "grown": [place for place, node in enumerate(nodes) if node.grown],
        "ends": {place: _OUTCOMES[node.outcome] for place, node in enumerate(nodes) if node.ended},
        "issued": [_counts(node.issued) for node in nodes],
        "passed": [_counts(node.passed) for node in nodes],
        "fair": [_fair(node) for node in nodes],
        "hidden": len(tree.nodes) - len(nodes),
        "steps": len(tree.nodes) - 1,
        "rollouts": tree.rollouts,
    }


def _counts(tally: Tally) -> list[int]:
    """Correct, graded and ungraded rollouts."""
    return [tally.correct, tally.graded, tally.ungraded]


def _fair(node: TreeNode) -> list[int]:
    """Correct and graded fair trials."""
    return [
        node.fair_issued.correct + node.fair_passed.correct,
        node.fair_issued.graded + node.fair_passed.graded,
    ]
