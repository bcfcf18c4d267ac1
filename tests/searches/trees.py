"""Problems with trees for tests of the page: random ones, and ones with given steps."""

import random
from collections.abc import Sequence
from typing import Any

from pipeline.analysis.searches.trees import ProblemTree, SearchedProblem, answers_of, tree_of
from pipeline.core.records import ChainText, Finish, Verdict
from pipeline.core.tables import SampleAnswer, ScoreAnswer
from pipeline.searches.log import node_id, prefix_id, root_id
from tests.searches.handmade import Ended, Searched, searched_row

Row = dict[str, Any]


def grown_tree(seed: int, samples: int, problem_id: str = "p") -> ProblemTree:
    """A tree that grows by samples of one step after random nodes, The chosen chain is the longest one."""
    draws = random.Random(seed)
    open_nodes: list[tuple[str, tuple[str, ...]]] = [(root_id(problem_id), ())]
    grown: list[SampleAnswer] = []
    scores: list[ScoreAnswer] = []
    ends: list[tuple[str, tuple[str, ...]]] = []
    for draw in range(samples):
        after, path = draws.choice(open_nodes)
        text = f"step {len(path) + 1} {draws.choice('abcdef')}\n"
        ended = draws.random() < 0.2
        grown.append(sample_of(f"s{draw}", after, draw, [text], ended=ended, right=draws.random() < 0.5))
        made, path = node_id(f"s{draw}", 0), (*path, text)
        (ends if ended else open_nodes).append((made, path))
        score = draws.random()
        prefix = prefix_id(problem_id, path)
        scores.append(score_of(prefix, score, draws.random()))
    chosen = max(ends, key=lambda end: len(end[1]), default=(None, ()))[0]
    return tree_of(chain_of(problem_id), grown, scores, ends_of(chosen))


def written_problem(chains: Sequence[Sequence[str]], row: int = 0, **values: Any) -> SearchedProblem:
    """A problem whose whole chains have these steps. The first one is chosen; step k of each has the score 1 / k.
    `values`: of its row of `searches`."""
    problem_id = f"problem-{row}"
    samples = [
        sample_of(f"s{draw}", root_id(problem_id), draw, list(steps), ended=True, right=draw == 0)
        for draw, steps in enumerate(chains)
    ]
    scores = [
        score_of(prefix_id(problem_id, steps[:at]), 1 / at) for steps in chains for at in range(1, len(steps) + 1)
    ]
    chosen = node_id("s0", len(chains[0]) - 1) if chains else None
    candidates = [
        {"final_answer": each.answer, "score": 0.5, "verdict": each.verdict, "chosen": at == 0}
        for at, each in enumerate(samples)
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
    tree = tree_of(chain_of(problem_id), samples, scores, ends_of(chosen))
    return SearchedProblem(search=search, tree=tree, answers=answers_of(candidates))


def chain_of(problem_id: str, steps: tuple[str, ...] = (), answer: str | None = None) -> ChainText:
    """A problem, with the chain that the input has."""
    return ChainText(
        chain_id="chain", problem_id=problem_id, problem="", steps=steps, prefix_ids=(), final_answer=answer
    )


def ends_of(chosen: str | None, verdict: str | None = None) -> list[Row]:
    """The rows of `candidates`, of which only the chosen one is there."""
    return [] if chosen is None else [{"chain_id": chosen, "chosen": True, "verdict": verdict}]


def score_of(prefix: str, score: float | None, reliability: float | None = None) -> ScoreAnswer:
    return ScoreAnswer(0, prefix, 1, score, score, reliability)


def sample_of(
    sample_id: str,
    after: str,
    draw: int,
    steps: Sequence[str],
    *,
    ended: bool,
    right: bool = True,
    finish: Finish = Finish.STOP,
    extra: int = 1,
) -> SampleAnswer:
    """`extra`: tokens behind the last step."""
    ends = tuple(len("".join(steps[: at + 1])) for at in range(len(steps)))
    return SampleAnswer(
        row=0,
        sample_id=sample_id,
        node_id=after,
        draw=draw,
        steps=0,
        number=0,
        text="".join(steps),
        token_ids=(),
        step_ends=ends,
        token_ends=ends,
        finish=finish,
        ended=ended,
        answer=("7" if right else "5") if ended else None,
        verdict=(Verdict.CORRECT if right else Verdict.INCORRECT) if ended else None,
        n_tokens=sum(map(len, steps)) + extra,
    )
