"""Problems with trees for tests of the page: random ones, and ones with given steps."""

import random
from collections.abc import Sequence
from typing import Any

from pipeline.analysis.searches.trees import SearchedProblem, Tree, answers_of, tree_of
from pipeline.searches.ids import node_id, prefix_id, root_id
from tests.searches.handmade import Ended, Searched, searched_row

Row = dict[str, Any]


_SURE: Row = {"reliability": None, "fault": None}


def grown_tree(seed: int, samples: int, problem_id: str = "p") -> tuple[Tree, list[Row]]:
    """A tree that grows by samples of one step after random nodes, and its samples. The chosen chain is the longest one."""
    draws = random.Random(seed)
    open_nodes: list[tuple[str, tuple[str, ...]]] = [(root_id(problem_id), ())]
    rows: list[Row] = []
    scores: list[Row] = []
    ends: list[tuple[str, tuple[str, ...]]] = []
    for draw in range(samples):
        after, path = draws.choice(open_nodes)
        text = f"step {len(path) + 1} {draws.choice('abcdef')}\n"
        ended = draws.random() < 0.2
        rows.append(sample_row(f"s{draw}", after, draw, [text], ended=ended, right=draws.random() < 0.5))
        made, path = node_id(f"s{draw}", 0), (*path, text)
        (ends if ended else open_nodes).append((made, path))
        score = draws.random()
        prefix = prefix_id(problem_id, path)
        scores.append(
            {"prefix_id": prefix, "score": score, "raw_score": score, "reliability": draws.random(), "fault": None}
        )
    chosen = max(ends, key=lambda end: len(end[1]), default=(None, ()))[0]
    return tree_of(problem_id, rows, scores, chosen=chosen), rows


def written_problem(chains: Sequence[Sequence[str]], row: int = 0, **values: Any) -> SearchedProblem:
    """A problem whose whole chains have these steps. The first one is chosen; step k of each has the score 1 / k.
    `values`: of its row of `searches`."""
    problem_id = f"problem-{row}"
    rows = [
        sample_row(f"s{draw}", root_id(problem_id), draw, list(steps), ended=True, right=draw == 0)
        for draw, steps in enumerate(chains)
    ]
    scores = [
        {"prefix_id": prefix_id(problem_id, steps[:at]), "score": 1 / at, "raw_score": 1 / at, **_SURE}
        for steps in chains
        for at in range(1, len(steps) + 1)
    ]
    chosen = node_id("s0", len(chains[0]) - 1) if chains else None
    candidates = [
        {"final_answer": each["answer"], "score": 0.5, "verdict": each["verdict"], "chosen": at == 0}
        for at, each in enumerate(rows)
    ]
    searched = Searched(
        problem="What is it?",
        candidates=[Ended(scores=[0.5] * len(steps)) for steps in chains],
        chosen=0 if chains else None,
        scorer_computed=30,
        seconds=1.25,
    )
    search = {
        **searched_row(row, searched, "best_of_n", len(chains)),
        "problem_id": problem_id,
        "source_id": f"source-{row}",
        "weakest_step": len(chains[0]) if chains else None,
        "scored": len(scores),
        **values,
    }
    tree = tree_of(problem_id, rows, scores, chosen=chosen)
    return SearchedProblem(search=search, tree=tree, answers=answers_of(candidates))


def sample_row(
    sample_id: str,
    after: str,
    draw: int,
    steps: Sequence[str],
    *,
    ended: bool,
    right: bool = True,
    finish: str = "stop",
    extra: int = 1,
) -> Row:
    """`extra`: tokens behind the last step."""
    ends = [len("".join(steps[: at + 1])) for at in range(len(steps))]
    return {
        "row": 0,
        "sample_id": sample_id,
        "node_id": after,
        "draw": draw,
        "steps": 0,
        "text": "".join(steps),
        "step_ends": ends,
        "token_ends": ends,
        "finish": finish,
        "ended": ended,
        "answer": ("7" if right else "5") if ended else None,
        "verdict": ("correct" if right else "incorrect") if ended else None,
        "n_tokens": sum(map(len, steps)) + extra,
    }
