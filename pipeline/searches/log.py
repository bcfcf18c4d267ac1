"""The log of a search: every answer of the policy and of the scorer, as records and as tables.

With these answers a search takes the same path again, so its result follows from its log.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from pipeline.core.ids import content_id
from pipeline.core.records import Finish, Verdict
from pipeline.core.schemas import SAMPLES, STEP_SCORES
from pipeline.searches.base import Node, Sample, StepScore, path_of
from pipeline.searches.ids import node_id, prefix_id, root_id

FAILED_DRAW = -1
"""`draw` of the answer that says that a problem kills engines, and is not searched."""


class SampleAnswer(NamedTuple):
    """The answer of the policy to a `Sample`: see `schemas.SAMPLES`."""

    sample_id: str
    node_id: str
    draw: int
    steps: int
    number: int
    text: str
    token_ids: tuple[int, ...]
    step_ends: tuple[int, ...]
    token_ends: tuple[int, ...]
    finish: Finish
    ended: bool
    n_tokens: int
    n_prompt_tokens: int
    answer: str | None = None
    verdict: Verdict | None = None
    seconds: float = 0.0
    took: float = 0.0


class ScoreAnswer(NamedTuple):
    """The answer of the scorer for one prefix: see `schemas.STEP_SCORES`."""

    prefix_id: str
    step: int
    score: float | None
    raw_score: float | None
    reliability: float | None = None
    fault: str | None = None
    n_tokens: int = 0
    n_computed: int = 0
    seconds: float = 0.0
    took: float = 0.0

    @property
    def step_score(self) -> StepScore:
        """What a search is sent."""
        return StepScore(score=self.score, reliability=self.reliability, fault=self.fault or "")


def root_of(problem_id: str) -> Node:
    """The problem without any step."""
    return Node(node_id=root_id(problem_id), parent=None, depth=0, text="", prefix_id=prefix_id(problem_id, ()))


def failure(problem_id: str) -> SampleAnswer:
    """The answer that says that a problem kills engines."""
    return SampleAnswer(
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


def samples_table(answers: Sequence[tuple[int, SampleAnswer]]) -> pa.Table:
    """The table `samples`. `answers`: each with the row of its problem."""
    return _table(SAMPLES, SampleAnswer, answers)


def step_scores_table(answers: Sequence[tuple[int, ScoreAnswer]]) -> pa.Table:
    """The table `stepscores`. `answers`: each with the row of its problem."""
    return _table(STEP_SCORES, ScoreAnswer, answers)


def sample_answers(table: pa.Table) -> list[tuple[int, SampleAnswer]]:
    """The inverse of `samples_table`."""
    return [(row["row"], sample_answer(row)) for row in table.to_pylist()]


def score_answers(table: pa.Table) -> list[tuple[int, ScoreAnswer]]:
    """The inverse of `step_scores_table`."""
    return [(row["row"], score_answer(row)) for row in table.to_pylist()]


def sample_answer(row: Mapping[str, Any]) -> SampleAnswer:
    """A row of `samples` as the answer that it is. Raises ValueError for a finish or a verdict that is none."""
    kept = {name: value for name, value in row.items() if name != "row"}
    for name in ("token_ids", "step_ends", "token_ends"):
        kept[name] = tuple(kept[name])
    verdict = kept.pop("verdict")
    return SampleAnswer(
        **{**kept, "finish": Finish(kept["finish"])}, verdict=None if verdict is None else Verdict(verdict)
    )


def score_answer(row: Mapping[str, Any]) -> ScoreAnswer:
    """A row of `stepscores` as the answer that it is."""
    return ScoreAnswer(**{name: value for name, value in row.items() if name != "row"})


def _table(
    schema: pa.Schema, kind: type[SampleAnswer] | type[ScoreAnswer], answers: Sequence[tuple[int, tuple[Any, ...]]]
) -> pa.Table:
    """`answers`: of this kind."""
    columns: dict[str, Sequence[Any]] = dict.fromkeys(kind._fields, ())
    columns |= zip(kind._fields, zip(*(answer for _, answer in answers), strict=True), strict=False)
    columns["row"] = [row for row, _ in answers]
    return pa.Table.from_arrays([_array(columns[field.name], field) for field in schema], schema=schema)


def _array(values: Sequence[Any], field: "pa.Field[Any]") -> Any:
    if pa.types.is_dictionary(field.type):
        texts = pa.array([None if value is None else str(value) for value in values], pa.string())
        return texts.dictionary_encode().cast(field.type)
    return pa.array(values, field.type)
