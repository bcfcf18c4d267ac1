"""Makes pairs of human chains and labelled chains in one line."""

from collections.abc import Sequence
from typing import Any

from pipeline.analysis.agree.human import ChainPair, HumanChain, ModelChain, goods_until
from pipeline.core.records import RowLocation

RESAMPLES = 100


def human(
    goods: Sequence[bool | None],
    *,
    source_id: str | None = None,
    problem: str = "p",
    steps: Sequence[str] | None = None,
) -> HumanChain:
    texts = tuple(steps) if steps is not None else tuple(f"step {index}" for index in range(len(goods)))
    return HumanChain(
        location=RowLocation(file="people.jsonl", line=1),
        chain_id="",
        problem_id="",
        source_id=source_id,
        problem=problem,
        steps=texts,
        goods=tuple(goods),
    )


def labelled(
    values: Sequence[float | None],
    *,
    labels: Sequence[int | None] | None = None,
    outcome: bool | None = True,
    terminal: bool = False,
    source_id: str | None = None,
    problem: str = "p",
    steps: Sequence[str] | None = None,
    chain_id: str = "",
    **opinions: Any,
) -> ModelChain:
    texts = tuple(steps) if steps is not None else tuple(f"step {index}" for index in range(len(values)))
    return ModelChain(
        source_id=source_id,
        problem=problem,
        steps=texts,
        values=tuple(values),
        labels=tuple(labels) if labels is not None else tuple(None if v is None else int(v > 0) for v in values),
        outcome=outcome,
        terminal=terminal,
        chain_id=chain_id,
        problem_id="",
        **opinions,
    )


def pair(
    error: int, values: Sequence[float | None], *, outcome: bool | None = True, source_id: str | None = None
) -> ChainPair:
    """A pair from the human first error, -1 for none, and the run's values."""
    return ChainPair(
        human=human(goods_until(error, len(values)), source_id=source_id),
        labelled=labelled(values, outcome=outcome, source_id=source_id),
    )
