"""The rollout tree of a problem in Python: an outline for a reader, and all of its nodes as a frame.

Step texts are a model's: what a shell or a notebook shows of them is plain text.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import polars as pl

from pipeline.core.errors import UsageError
from pipeline.core.formatting import printable
from pipeline.core.shown import MOST_LINES, Shown
from pipeline.storage.stored_trees import ProblemTree, StoredTrees
from pipeline.trees.posterior import Posterior, posteriors
from pipeline.trees.tree import NO_PARENT, RolloutTree, TreeNode, by_count, most_counted

_TEXT = 100
"""Characters of a step in the outline, at most."""
_INDENT = 12
"""Steps of indentation, at most."""
_SCHEMA: dict[str, Any] = {
    "unit": pl.Int32,
    "node": pl.Int32,
    "parent": pl.Int32,
    "depth": pl.Int32,
    "step": pl.String,
    "ended": pl.Boolean,
    "outcome": pl.Boolean,
    "value": pl.Float64,
    "value_sd": pl.Float64,
    "unbiased_value": pl.Float64,
    "label": pl.Int8,
    "posterior_mean": pl.Float64,
    "p_above": pl.Float64,
    "issued_correct": pl.Int32,
    "issued": pl.Int32,
    "passed_correct": pl.Int32,
    "passed": pl.Int32,
    "fair_correct": pl.Int32,
    "fair": pl.Int32,
    "prefix_ids": pl.List(pl.String),
    "rollout_id": pl.String,
    "grown": pl.Boolean,
}
"""The columns of `nodes`."""


class LabelledTree(Shown):
    """What the policy wrote for one problem: the chains of the run and the rollouts of their prefixes, joined where their steps
    have equal texts. A shell or a notebook shows an outline of the nodes with the most rollouts.

    `problem`, `problem_id`, `gold_answer`: of the problem. `source_ids`: your own ids of its rows. `trees`: one for each unit
    of the run that has the problem, as `pipeline.trees.tree` describes it. An input that has grown may have the problem in
    several units, which share no rollouts.
    """

    def __init__(self, found: Sequence[ProblemTree], threshold: float, strength: float) -> None:
        """`threshold`: that of the run's labels. `strength`: see `pipeline.trees.posterior`."""
        first = found[0]
        self.problem = first.problem
        self.problem_id = first.tree.problem_id
        self.gold_answer = first.gold_answer
        self.source_ids = tuple(dict.fromkeys(name for each in found for name in each.source_ids))
        self.trees = tuple(each.tree for each in found)
        self._threshold = threshold
        self._strength = strength

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """One row for each node, parents before their children. A node is a prefix: the problem and some steps.

        `unit`: the tree that it is in, from 0. `node`, `parent`: numbers over all trees; the bare problem has no parent and no
        `step`. `ended`: the chain ends with it, and `outcome` says whether it is correct.

        Labels, for prefixes of chains of the run: `value`, `value_sd`, `unbiased_value` and `label`, as in `labels()`. `value`
        is also there for every ended chain: its outcome. `prefix_ids` names the labelled prefixes that the node is, several
        where equal texts have different tokens.

        Evidence, for all nodes: the graded rollouts that were `issued` at it, and those that `passed` through it from above,
        with the correct ones among them. `fair` and `fair_correct` are those of both whose number does not depend on outcomes:
        unbiased trials of the node's value. `posterior_mean` and `p_above`, the probability that the value is above the
        threshold of the labels, use all of them and a prior. They are estimates and no labels: the mean is biased towards the
        value of the step before.

        `rollout_id`: the rollout that wrote the node first; null if none did. `grown`: `grow` promoted the node.
        """
        rows: list[dict[str, Any]] = []
        first = 0
        for unit, tree in enumerate(self.trees):
            for place, (node, posterior) in enumerate(zip(tree.nodes, posteriors(tree, self._strength), strict=True)):
                rows.append({"unit": unit, "node": first + place, **self._row(node, posterior, first)})
            first += len(tree.nodes)
        return pl.DataFrame(rows, schema=_SCHEMA, orient="row")

    def _row(self, node: TreeNode, posterior: Posterior, first: int) -> dict[str, Any]:
        label = node.label
        inner = node.parent != NO_PARENT
        return {
            "parent": first + node.parent if inner else None,
            "depth": node.depth,
            "step": node.text if inner else None,
            "ended": node.ended,
            "outcome": node.outcome,
            "value": node.value,
            "value_sd": label and label.value_sd,
            "unbiased_value": label and label.unbiased_value,
            "label": label and label.label,
            "posterior_mean": posterior.mean,
            "p_above": posterior.above(self._threshold),
            "issued_correct": node.issued.correct,
            "issued": node.issued.graded,
            "passed_correct": node.passed.correct,
            "passed": node.passed.graded,
            "fair_correct": node.fair_issued.correct + node.fair_passed.correct,
            "fair": node.fair_issued.graded + node.fair_passed.graded,
            "prefix_ids": node.prefix_ids,
            "rollout_id": node.source.rollout_id if node.source else None,
            "grown": node.grown,
        }

    def _shown_lines(self) -> Iterator[str]:
        steps = sum(len(tree.nodes) - 1 for tree in self.trees)
        rollouts = sum(tree.rollouts for tree in self.trees)
        yield _short(self.problem)
        yield f"answer {_short(self.gold_answer)}; {steps:,} steps of {rollouts:,} rollouts and the chains"
        yield "value  correct/graded of its own rollouts and those that pass; ~ is an estimate, no label; * measured by `grow`"
        left = MOST_LINES - 4
        shown = 0
        for tree in self.trees:
            lines = list(_outline(tree, posteriors(tree, self._strength), left - shown))
            shown += len(lines)
            yield from lines
        if (more := steps + len(self.trees) - shown) > 0:
            yield f"and {more:,} more: `nodes` has all"


def _outline(tree: RolloutTree, found: Sequence[Posterior], most: int) -> Iterator[str]:
    kept = set(most_counted(tree, most))
    waiting = [0] if kept else []
    while waiting:
        place = waiting.pop()
        yield _line(tree.nodes[place], found[place])
        waiting += by_count(tree, [child for child in tree.nodes[place].children if child in kept])[::-1]


def _line(node: TreeNode, posterior: Posterior) -> str:
    value = f"~{posterior.mean:.2f}" if node.value is None else f" {node.value:.2f}"
    ended = {True: "  (ends, right)", False: "  (ends, wrong)", None: "  (ends)"}[node.outcome] if node.ended else ""
    text = "the problem" if node.parent == NO_PARENT else _short(node.text)
    mark = "* " if node.grown else ""
    return f"{value} {f'{node.correct}/{node.graded}':>9}  {'  ' * min(node.depth, _INDENT)}{mark}{text}{ended}"


def _short(text: str) -> str:
    line = printable(text)
    return line if len(line) <= _TEXT else f"{line[:_TEXT]}..."


def labelled_tree(stored: StoredTrees, problem: str | int) -> LabelledTree:
    """The tree of one problem of a run. Raises UsageError as `StoredTrees.of_problem` does, and where several problems have
    that name."""
    found = stored.of_problem(problem)
    ids = list(dict.fromkeys(each.tree.problem_id for each in found))
    if len(ids) > 1:
        raise UsageError(
            f"{str(problem)[:80]!r} names {len(ids)} problems: give the problem_id of one, such as {ids[0]}"
        )
    return LabelledTree(found, stored.threshold, stored.strength)
