"""The nodes that a search gets from its log: every answer of the policy and of the scorer.

With these answers a search takes the same path again, so its result follows from its log.
"""

from collections.abc import Sequence
from itertools import pairwise

from pipeline.core.ids import content_id
from pipeline.core.records import Finish
from pipeline.core.tables import SampleAnswer
from pipeline.searches.base import Node, Sample, path_of
from pipeline.searches.ids import node_id, prefix_id, root_id

FAILED_DRAW = -1
"""`draw` of the answer that says that a problem kills engines, and is not searched."""


def root_of(problem_id: str) -> Node:
    """The problem without any step."""
    return Node(node_id=root_id(problem_id), parent=None, depth=0, text="", prefix_id=prefix_id(problem_id, ()))


def failure(problem_id: str, row: int) -> SampleAnswer:
    """The answer that says that a problem kills engines."""
    return SampleAnswer(
        row=row,
        sample_id=content_id("failed", problem_id),
        node_id=root_id(problem_id),
        draw=FAILED_DRAW,
        steps=0,
        number=0,
        text="",
        token_ids=(),
        step_ends=(),
        token_ends=(),
        finish=Finish.ENGINE_FAILED,
        ended=True,
        n_tokens=0,
        n_prompt_tokens=0,
    )


def nodes_of(problem_id: str, asked: Sample, answer: SampleAnswer) -> tuple[Node, ...]:
    """The nodes that a sample leads to, in order: one for each of its steps; one blank node if it has none."""
    found: list[Node] = []
    parent = asked.node
    steps = [node.text for node in path_of(parent)]
    pieces = [answer.text[begin:end] for begin, end in pairwise((0, *answer.step_ends))] or [answer.text]
    counts = [end - begin for begin, end in pairwise((0, *answer.token_ends))] or [len(answer.token_ids)]
    for index, (text, tokens) in enumerate(zip(pieces, counts, strict=True)):
        last = index == len(pieces) - 1
        blank = not text.strip()
        if not blank:
            steps.append(text)
        ended = answer.ended and last
        parent = Node(
            node_id=node_id(answer.sample_id, index),
            parent=parent,
            depth=parent.depth + (not blank),
            text=text,
            prefix_id=parent.prefix_id if blank else prefix_id(problem_id, steps),
            n_tokens=tokens,
            ended=ended,
            cut=ended and answer.finish is not Finish.STOP,
            answer=answer.answer if ended else None,
        )
        found.append(parent)
    return tuple(found)


def given_nodes(
    root: Node, problem_id: str, chain_id: str, steps: Sequence[str], answer: str | None
) -> tuple[Node, ...]:
    """The nodes of a chain that the input has. `answer`: the final answer that it states."""
    found: list[Node] = []
    parent = root
    for index in range(len(steps)):
        last = index == len(steps) - 1
        parent = Node(
            node_id=node_id(chain_id, index),
            parent=parent,
            depth=index + 1,
            text=steps[index],
            prefix_id=prefix_id(problem_id, steps[: index + 1]),
            ended=last,
            answer=answer if last else None,
        )
        found.append(parent)
    return tuple(found)
