"""The ids of the nodes of a search. They follow from the problem and the draws alone, so a search that starts again finds its
log. Pure."""

from collections.abc import Sequence

from pipeline.core.ids import content_id


def root_id(problem_id: str) -> str:
    """Id of the node without steps."""
    return content_id("root", problem_id)


def sample_id(node_id: str, prefix_id: str, draw: int, steps: int) -> str:
    """Id of a sample of `steps` steps after a node. It follows from the texts before it too: an answer that was lost and is
    sampled again, as another text, has other successors."""
    return content_id("sample", node_id, prefix_id, str(draw), str(steps))


def node_id(sample_id: str, index: int) -> str:
    """Id of the node that step `index` of a sample leads to. Steps of a sample count from 0."""
    return content_id("node", sample_id, str(index))


def prefix_id(problem_id: str, steps: Sequence[str]) -> str:
    """Id of the problem with these steps: equal for steps whose texts are equal without the white space around them. Blank
    steps do not count."""
    return content_id("prefix", problem_id, *(text for step in steps if (text := step.strip())))
