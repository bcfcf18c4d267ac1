"""Pairs of sibling steps from rollouts, against those of labels, where arithmetic says which step is right.

A run of the tiny policy with fixed N rollouts of each prefix. A pair is *true* if the chain is right up to its better step and
wrong up to its worse one, *reversed* if it is the other way round, and *neither* if both are right or both wrong. Labels pair
their good steps with their bad ones; the tree of rollouts pairs all siblings that are certain enough (`formats.siblings`).
"""

import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from pipeline.estimators.labels import NEGATIVE, POSITIVE
from pipeline.export.formats.siblings import sibling_pairs
from pipeline.storage.local import LocalStorage
from pipeline.storage.stored_run import stored_run
from pipeline.storage.stored_trees import ProblemTree, StoredTrees
from pipeline.trees.posterior import Posterior, posteriors
from tests.bench.loop.problems import exercises, right_so_far, row
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process
from tests.settings import compose_label
from tests.tiny.arithmetic import POLICY_SIZE, Exercise
from tests.tiny.policy import SHORT

PROBLEMS, SOLUTIONS, ROLLOUTS = 80, 5, 8
SEED = 7
CERTAINTIES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
MARGINS = (0.1, 0.25, 0.5)
COUNTS = (1, 2, 4, 8)
CERTAINTY = 0.9
"""Of the rows that sort pairs by margin and by count."""
TRUE, REVERSED, NEITHER = "true", "reversed", "neither"


class Problem(NamedTuple):
    tree: ProblemTree
    values: Sequence[Posterior]
    exercise: Exercise


class Pair(NamedTuple):
    """`certainty` and `margin`: see `siblings.SiblingPair`. `rollouts`: graded ones of the step that has fewer."""

    kind: str
    certainty: float
    margin: float
    rollouts: int


def harvest() -> None:
    chosen = exercises(random.Random(SEED), POLICY_SIZE, PROBLEMS)
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        for line in table(trees(Path(folder), chosen)):
            print(line)


def trees(folder: Path, chosen: Sequence[Exercise]) -> list[Problem]:
    """Label in a folder, and read the trees."""
    write_rows(folder / "rows.jsonl", [row(exercise) for exercise in chosen])
    asked = [
        f"data.path={folder / 'rows.jsonl'}", f"run_dir={folder / 'run'}", "estimator=fixed", "cluster.workers=1",
        f"sampling.rollouts={ROLLOUTS}", f"sampling.solutions={SOLUTIONS}",
    ]  # fmt: skip
    label_in_process(compose_label([*SHORT.overrides, *asked]))
    return read(folder / "run", chosen)


def read(run_dir: Path, chosen: Sequence[Exercise]) -> list[Problem]:
    storage = LocalStorage(run_dir)
    stored = StoredTrees(stored_run(storage))
    by_text = {exercise.problem: exercise for exercise in chosen}
    return [
        Problem(tree, posteriors(tree.tree, stored.strength), by_text[tree.problem]) for _, tree in stored.problems()
    ]


def table(problems: Sequence[Problem]) -> Iterator[str]:
    nodes = sum(len(problem.tree.tree.nodes) for problem in problems)
    labelled = sum(node.label is not None for problem in problems for node in problem.tree.tree.nodes)
    yield f"{len(problems)} problems, {nodes:,} nodes, {labelled:,} of them labelled"
    yield "| pairs | true | reversed | neither | true of true and reversed |"
    yield "|---|---|---|---|---|"
    yield _line("good and bad labels", [pair for problem in problems for pair in labelled_pairs(problem)])
    found = [pair for problem in problems for pair in _harvested(problem)]
    for certainty in CERTAINTIES:
        yield _line(f"certainty {certainty:g}", [pair for pair in found if pair.certainty >= certainty])
    sure = [pair for pair in found if pair.certainty >= CERTAINTY]
    for margin in MARGINS:
        yield _line(f"certainty {CERTAINTY:g}, margin {margin:g}", [pair for pair in sure if pair.margin >= margin])
    for count, above in zip(COUNTS, (*COUNTS[1:], None), strict=True):
        within = [pair for pair in sure if pair.rollouts >= count and (above is None or pair.rollouts < above)]
        what = f"{count} or more" if above is None else f"{count}" if above == count + 1 else f"{count} to {above - 1}"
        yield _line(f"certainty {CERTAINTY:g}, fewer rollouts: {what}", within)


def labelled_pairs(problem: Problem) -> Iterator[Pair]:
    """The steps that labels call good, with their siblings that they call bad."""
    tree = problem.tree.tree
    for nodes in tree.sibling_sets():
        for good, bad in permutations(nodes, 2):
            labels = [tree.nodes[node].label for node in (good, bad)]
            if any(tree.nodes[node].ended for node in (good, bad)) or None in labels:
                continue
            if [label.label for label in labels if label] == [POSITIVE, NEGATIVE]:
                yield Pair(_kind(problem, good, bad), 1.0, 1.0, ROLLOUTS)


def _harvested(problem: Problem) -> Iterator[Pair]:
    tree = problem.tree.tree
    for pairs in sibling_pairs(tree, problem.values, certainty=min(CERTAINTIES)):
        for pair in pairs:
            fewer = min(tree.nodes[node].graded for node in (pair.better, pair.worse))
            yield Pair(_kind(problem, pair.better, pair.worse), pair.certainty, pair.margin, fewer)


def _kind(problem: Problem, better: int, worse: int) -> str:
    one, other = (right_so_far(problem.tree.tree.steps(node), problem.exercise)[-1] for node in (better, worse))
    return NEITHER if one is other else TRUE if one else REVERSED


def _line(name: str, pairs: Sequence[Pair]) -> str:
    counted = Counter(pair.kind for pair in pairs)
    decided = counted[TRUE] + counted[REVERSED]
    share = f"{counted[TRUE] / decided:.3f}" if decided else ""
    return f"| {name} | {counted[TRUE]:,} | {counted[REVERSED]:,} | {counted[NEITHER]:,} | {share} |"
