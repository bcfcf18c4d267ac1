"""The nodes that a search gets from its log: every answer of the policy and of the scorer.

With these answers a search takes the same path again, so its result follows from its log. Ids follow from the problem and the
draws alone, so a search that starts again finds its log.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise, repeat

from pipeline.core.ids import content_id
from pipeline.core.records import ChainText, Finish
from pipeline.core.tables import SampleAnswer
from pipeline.searches.base import Node, path_of

FAILED_DRAW = -1
"""`draw` of the answer that says that a problem kills engines, and is not searched."""


def root_id(problem_id: str) -> str:
    """Id of the node without steps."""
    return content_id("root", problem_id)


def node_id(sample_id: str, index: int) -> str:
    """Id of the node that step `index` of a sample leads to. Steps of a sample count from 0."""
    return content_id("node", sample_id, str(index))


def prefix_id(problem_id: str, steps: Sequence[str]) -> str:
    """Id of the problem with these steps: equal for steps whose texts are equal without the white space around them. Blank
    steps do not count."""
    return content_id("prefix", problem_id, *(text for step in steps if (text := step.strip())))


def root_of(problem_id: str) -> Node:
    """The problem without any step."""
    return Node(node_id=root_id(problem_id), parent=None, depth=0, text="", prefix_id=prefix_id(problem_id, ()))


def first_nodes(problem: ChainText) -> tuple[Node, ...]:
    """The nodes that a search begins with: the problem without any step, then those of the chain that the input has."""
    found = [root_of(problem.problem_id)]
    for index, text in enumerate(problem.steps):
        last = index == len(problem.steps) - 1
        node = Node(
            node_id=node_id(problem.chain_id, index),
            parent=found[-1],
            depth=index + 1,
            text=text,
            prefix_id=prefix_id(problem.problem_id, problem.steps[: index + 1]),
            ended=last,
            answer=problem.final_answer if last else None,
        )
        found.append(node)
    return tuple(found)


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
    )


def nodes_of(problem_id: str, after: Node, answer: SampleAnswer) -> tuple[Node, ...]:
    """The nodes that a sample after a node leads to, in order: one for each of its steps; one blank node if it has none."""
    found: list[Node] = []
    steps = [node.text for node in path_of(after)]
    pieces = [answer.text[begin:end] for begin, end in pairwise((0, *answer.step_ends))] or [""]
    counts = (end - begin for begin, end in pairwise((0, *answer.token_ends)))
    # The ends of a damaged answer may not fit each other, which `audit` says.
    for index, (text, tokens) in enumerate(zip(pieces, chain(counts, repeat(0)), strict=False)):
        blank = not text.strip()
        if not blank:
            steps.append(text)
        ended = answer.ended and index == len(pieces) - 1
        after = Node(
            node_id=node_id(answer.sample_id, index),
            parent=after,
            depth=after.depth + (not blank),
            text=text,
            prefix_id=after.prefix_id if blank else prefix_id(problem_id, steps),
            n_tokens=tokens,
            ended=ended,
            cut=ended and answer.finish != Finish.STOP,
            answer=answer.answer if ended else None,
        )
        found.append(after)
    return tuple(found)


def followed(
    problem: ChainText, first: Iterable[Node], samples: Iterable[SampleAnswer]
) -> Iterator[tuple[SampleAnswer, tuple[Node, ...]]]:
    """The samples that follow from the `first_nodes`, each after those that lead to it, with the nodes that it leads to."""
    waiting: defaultdict[str, list[SampleAnswer]] = defaultdict(list)
    for each in samples:
        if each.draw != FAILED_DRAW:
            waiting[each.node_id].append(each)
    due = list(first)
    for node in due:
        for each in sorted(waiting.pop(node.node_id, ()), key=lambda sample: (sample.draw, sample.steps)):
            nodes = nodes_of(problem.problem_id, node, each)
            due += nodes
            yield each, nodes
