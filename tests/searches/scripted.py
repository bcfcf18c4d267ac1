"""A problem whose steps and scores are written by hand. A sample with draw d continues with the d-th next step, cyclically."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.graders.answer_groups import answer_groups
from pipeline.searches.base import WHOLE, Ask, Found, Node, Sample, Score, Search, StepScore, Task, path_of, wrong_found
from pipeline.searches.log import node_id, prefix_id, root_of
from pipeline.searches.machine import Machine
from tests.searches.worlds import Pick, in_order, run

Steps = Mapping[str, Sequence[str]]
"""Texts so far, joined by blanks -> the next texts. A chain ends where none follows, and where the policy draws ""."""
PROBLEM = "scripted"


@dataclass(slots=True, eq=False)
class Scripted:
    """`scores`: of the texts so far, joined by blanks; what is missing has no score. An ended chain states its last text as the
    answer, unless it is in `silent`. `endless`: no chain ends. `asked`: all questions."""

    steps: Steps
    scores: Mapping[str, float] = field(default_factory=dict)
    reliabilities: Mapping[str, float] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    endless: bool = False
    asked: list[Ask] = field(default_factory=list)

    def answer(self, ask: Ask) -> object:
        self.asked.append(ask)
        if isinstance(ask, Score):
            assert ask.node.depth, "a chain without steps has no score"
            texts = [node.text for node in path_of(ask.node)]
            return tuple(self._score(" ".join(texts[: at + 1])) for at in range(len(texts)))
        assert not ask.node.ended
        nodes: list[Node] = []
        parent, draw = ask.node, ask.draw
        while not nodes or not (nodes[-1].ended or len(nodes) == ask.steps or self.endless):
            parent = self._next(parent, ask, draw, len(nodes))
            nodes.append(parent)
            draw = 0
        return tuple(nodes)

    def found(self, search: Search, given: tuple[Node, ...] = (), pick: Pick = in_order) -> Found:
        task = Task(problem_id=PROBLEM, root=self.root, given=given, groups=answer_groups, settings=search.settings)
        found = run(Machine(search.search(task)), self.answer, pick)
        assert not wrong_found(found)
        return found

    @property
    def samples(self) -> list[Sample]:
        return [ask for ask in self.asked if isinstance(ask, Sample)]

    @property
    def root(self) -> Node:
        return root_of(PROBLEM)

    def _score(self, texts: str) -> StepScore:
        return StepScore(score=self.scores.get(texts), reliability=self.reliabilities.get(texts))

    def _next(self, parent: Node, ask: Sample, draw: int, index: int) -> Node:
        options = ["on"] if self.endless else self.steps[written(parent)]
        text = options[draw % len(options)]
        ended = not self.endless and (not text or not self.steps.get(f"{written(parent)} {text}".strip()))
        return self._node(parent, text, node_id(ask.key, index), ended=ended)

    def _node(self, parent: Node, text: str, name: str, *, ended: bool) -> Node:
        texts = [node.text for node in path_of(parent)] + [text] * bool(text)
        return Node(
            node_id=name,
            parent=parent,
            depth=len(texts),
            text=text,
            prefix_id=prefix_id(PROBLEM, texts),
            ended=ended,
            answer=text if ended and text and text not in self.silent else None,
        )


def written(node: Node | None) -> str:
    return "" if node is None else " ".join(step.text for step in path_of(node))


def chosen(found: Found) -> str:
    return written(found.chosen)


def whole_chains(world: Scripted) -> int:
    return sum(sample.steps == WHOLE for sample in world.samples)
