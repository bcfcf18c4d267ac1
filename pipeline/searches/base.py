"""The interface of a search: how steps of one problem are sampled and scored until a chain is chosen.

A search is a generator, and pure: it yields what it wants to know and is sent the answers. `sample` and `score` ask for one
thing, `together` for several that do not wait for each other. Its decisions follow from the answers alone, not from the order
in which they arrive, and its random numbers from (seed, problem, node). So a search that starts again from its log takes the
same path. `machine.Machine` runs one.

    def search(self, task: Task) -> Steps[Found]:
        ends = yield from together([whole_chain(task.root, draw) for draw in range(self.settings.n)])
"""

import random
from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from pipeline.config.choices import Aggregation
from pipeline.config.search import SearchConfig
from pipeline.core.ids import content_id

T = TypeVar("T")
WHOLE = 0
"""`Sample.steps` of a sample that goes on to the end of the chain."""


def sample_id(node_id: str, prefix_id: str, draw: int, steps: int) -> str:
    """Id of a sample of `steps` steps after a node. It follows from the texts before it too: an answer that was lost and is
    sampled again, as another text, has other successors."""
    return content_id("sample", node_id, prefix_id, str(draw), str(steps))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """A prefix of a chain: a problem with the first `depth` steps.

    `node_id` follows from the draws that led here, `prefix_id` from the texts: nodes with equal texts have equal `prefix_id`s,
    and one score. `text`: the last step as the policy wrote it; blank where the policy ended the chain after the step before,
    and then the node counts no further step. `n_tokens`: of the last step. `ended`: no step follows: the policy ended the chain
    or it was cut. `cut`: a limit of tokens, steps or context ended it. `answer`: the final answer that an ended chain states,
    if any."""

    node_id: str
    parent: "Node | None"
    depth: int
    text: str
    prefix_id: str
    n_tokens: int = 0
    ended: bool = False
    cut: bool = False
    answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Asks for the next steps after `node`: `steps` of them, or all to the end of the chain (WHOLE). `draw` keeps samples of
    the same node apart.

    The answer is a tuple with a node for each sampled step, in order: fewer than `steps` where the chain ends before. It has at
    least one node; only the last one may be `ended`. Never ask for a sample of an ended node.
    """

    node: Node
    draw: int
    steps: int = 1

    key: str = field(init=False, repr=False)
    """Identity of the answer: `sample_id`."""

    def __post_init__(self) -> None:
        node = self.node
        object.__setattr__(self, "key", sample_id(node.node_id, node.prefix_id, self.draw, self.steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Asks for the scores of the chain that ends at `node`, which has a step. The answer is a `StepScore` for each of its
    steps; with `Search.newest_only` only that of the last step is computed, and the others are those of earlier answers."""

    node: Node

    key: str = field(init=False, repr=False)
    """Identity of the answer."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"score {self.node.prefix_id}")


class StepScore(NamedTuple):
    """The score of a step in [0, 1], calibrated where the settings say so; None where the scorer gives none, and `fault` says
    why (see `scorers.base`). `reliability`: how sure the scorer is, in [0, 1]; None where it does not say.

    A tuple, as are other records that a run makes for each step: a frozen dataclass takes three times as long to make."""

    score: float | None = None
    reliability: float | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Together:
    """Asks for the results of several searches that do not wait for each other, in their order."""

    parts: Sequence["Steps[Any]"]


Ask = Sample | Score
"""What is asked of a policy or of a scorer."""
Steps = Generator[Sample | Score | Together, Any, T]
"""A search, or a part of one, that ends with a T."""


def sample(node: Node, draw: int, steps: int = 1) -> "Steps[tuple[Node, ...]]":
    """See `Sample`."""
    found: tuple[Node, ...] = yield Sample(node=node, draw=draw, steps=steps)
    return found


def score(node: Node) -> "Steps[StepScore]":
    """The score of the last step of a chain. That of a chain without steps is unknown."""
    if not node.depth:
        return StepScore()
    found: tuple[StepScore, ...] = yield Score(node=node)
    return found[-1]


def step_scores(node: Node) -> "Steps[tuple[StepScore, ...]]":
    """The scores of all steps of a chain."""
    if not node.depth:
        return ()
    found: tuple[StepScore, ...] = yield Score(node=node)
    return found


def together(parts: "Sequence[Steps[T]]") -> "Steps[list[T]]":
    """See `Together`. A single part is a search like any other: nothing waits beside it."""
    if len(parts) == 1:
        return [(yield from parts[0])]
    found: list[T] = yield Together(tuple(parts))
    return found


def path_of(node: Node) -> list[Node]:
    """The nodes from the first step to `node`: one for each step. A blank end is not among them."""
    path: list[Node] = []
    at: Node | None = node
    while at is not None and at.parent is not None:
        if at.text.strip():
            path.append(at)
        at = at.parent
    return path[::-1]


class Stop(StrEnum):
    """Why a search ended: all was sampled that its settings ask for; a chain was good enough (`search.accept`); no chain could
    be sampled."""

    DONE = "done"
    ACCEPTED = "accepted"
    NO_CHAIN = "no_chain"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How a search ended. `candidates`: the ended chains that it chose from, in the order in which it made them; no node twice.
    `chosen`: one of them, or None if there is none. `confidence`: how sure the method is of its choice, in [0, 1]: for a choice
    by score the chain's score, for a vote the share of the votes or less; None where it does not know."""

    candidates: tuple[Node, ...]
    chosen: Node | None
    confidence: float | None = None
    stopped: Stop = Stop.DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A problem to search. `given`: the nodes of a chain that the input has, one for each step, the last one `ended`; empty
    where the input has none. `groups`: numbers for answers, the same for equal ones, None for no answer."""

    problem_id: str
    root: Node
    given: tuple[Node, ...] = ()
    groups: Callable[[Sequence[str | None]], Sequence[int | None]]
    settings: SearchConfig

    @property
    def aggregation(self) -> Aggregation:
        """How step scores make the score of a chain."""
        return self.settings.aggregation

    def random(self, node: Node, purpose: str = "") -> random.Random:
        """Random numbers that depend on (seed, problem, node, purpose) alone."""
        return random.Random(
            int(content_id("random", str(self.settings.seed), self.problem_id, node.node_id, purpose), 16)
        )


class Search(Protocol):
    """A method of search with its settings. An implementation defines `search`."""

    Config: ClassVar[type[SearchConfig]] = SearchConfig
    """Its settings: a subclass of `SearchConfig` whose `method` is the search's name."""
    scores: ClassVar[bool] = True
    """Whether it asks for scores. If not, no scorer is loaded."""
    newest_only: ClassVar[bool] = True
    """Whether it asks for the score of each new step. False: it asks for scores of whole chains alone, and all steps of a chain
    are scored at once."""

    uses_given: ClassVar[bool] = False
    """Whether it uses the chain that a row of the input has (`Task.given`). If not, each problem is searched once."""

    settings: SearchConfig

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @abstractmethod
    def search(self, task: Task) -> "Steps[Found]":
        """The search of one problem."""
        ...


def wrong_found(found: Any) -> str:
    """What is wrong with the end of a search, or an empty text."""
    if not isinstance(found, Found):
        return f"it must end with a Found, but ended with {found!r:.200}"
    ids = [node.node_id for node in found.candidates]
    if len(set(ids)) != len(ids) or not all(node.ended for node in found.candidates):
        return "its candidates are not distinct ended chains"
    if found.chosen is not None and found.chosen.node_id not in ids:
        return "it chose a chain that is not among its candidates"
    if found.confidence is not None and not 0.0 <= found.confidence <= 1.0:
        return f"its confidence is {found.confidence}"
    return ""


def wrong_ask(ask: Any) -> str:
    """What is wrong with a question of a search, or an empty text."""
    match ask:
        case Sample(node=Node(ended=True)):
            return "it asks for a sample after the end of a chain"
        case Sample(steps=steps) if steps < 0:
            return f"it asks for a sample of {steps} steps"
        case Score(node=Node(depth=0)):
            return "it asks for the score of a chain without steps"
        case Sample() | Score():
            return ""
    return f"it must yield Sample, Score or Together, but yielded {ask!r:.200}"
