"""What the browser shows of a chain: rows of `labels` as records, with texts cut. Pure.

Shown is the unbiased value of the fixed estimator, and the posterior mean of those that stop early, as in the terminal.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.estimators.registry import value_column

_PER_PREFIX = (
    *("value", "low", "high", "posterior_mean", "posterior_sd"),
    *("n_correct", "n_rollouts", "n_ungraded", "n_truncated", "origin"),
)
COLUMNS = (
    *("chain_id", "problem_id", "source_id", "problem", "gold_answer", "steps", "root_prefix_id", "prefix_ids"),
    *("final_answer", "outcome", "estimator", "label", *_PER_PREFIX, *(f"root_{name}" for name in _PER_PREFIX)),
)
"""Of `labels`."""
SHORT_CHARACTERS = 200
"""Of answers and the user's ids, whatever the limit of other texts."""
_DIGITS = 9
"""Of a drop: 0.9 - 0.8 and 0.8 - 0.7 are the same one, which floating point takes for two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """One prefix: a step with all before it, or the bare problem, whose text is empty. `sd` is the posterior's."""

    prefix_id: str
    text: str
    value: float | None
    low: float | None
    high: float | None
    sd: float | None
    n_correct: int
    n_rollouts: int
    n_ungraded: int
    n_truncated: int
    origin: str | None
    label: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChain:
    """A chain; `root` is its bare problem. `outcome`: whether its own answer is right, None where that is not known."""

    chain_id: str
    problem_id: str
    source_id: str
    problem: str
    gold: str
    answer: str | None
    outcome: bool | None
    root: ShownStep
    steps: tuple[ShownStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """How much lower a step's value is than the last known one before it; `step` counts from 1."""

    size: float
    step: int


def shown_chain(row: Mapping[str, Any], characters: int) -> ShownChain:
    """A row of `labels`, with the `COLUMNS`; texts are cut at `characters`."""
    value = value_column(None, row["estimator"]).value
    return ShownChain(
        chain_id=row["chain_id"],
        problem_id=row["problem_id"],
        source_id=cut(row["source_id"] or "", SHORT_CHARACTERS),
        problem=cut(row["problem"], characters),
        gold=cut(row["gold_answer"], SHORT_CHARACTERS),
        answer=None if row["final_answer"] is None else cut(row["final_answer"], SHORT_CHARACTERS),
        outcome=row["outcome"],
        root=_step(row["root_prefix_id"], "", None, {name: row[f"root_{name}"] for name in _PER_PREFIX}, value),
        steps=tuple(
            _step(prefix_id, cut(text, characters), label, dict(zip(_PER_PREFIX, found, strict=True)), value)
            for prefix_id, text, label, *found in zip(
                row["prefix_ids"], row["steps"], row["label"], *(row[name] for name in _PER_PREFIX), strict=True
            )
        ),
    )


def cut(text: str, characters: int) -> str:
    """The text, or its beginning with what its whole length is."""
    if len(text) <= characters:
        return text
    return f"{text[:characters]} ... ({len(text):,} characters, whole in labels/*.parquet)"


def drops(chain: ShownChain) -> Iterator[Drop]:
    """The losses of the chain's steps, from the bare problem on; a step whose value is not known has none."""
    before = chain.root.value
    for number, step in enumerate(chain.steps, start=1):
        if step.value is None:
            continue
        if before is not None and step.value < before:
            yield Drop(size=round(before - step.value, _DIGITS), step=number)
        before = step.value


def largest_drop(chain: ShownChain) -> Drop | None:
    """The first of the largest; None where no step has lost anything."""
    return max(drops(chain), key=lambda drop: drop.size, default=None)


def uncertainty(chain: ShownChain) -> float | None:
    """Root mean square of the posterior standard deviations of the steps; None where none is known."""
    known = [step.sd for step in chain.steps if step.sd is not None]
    return math.sqrt(sum(sd * sd for sd in known) / len(known)) if known else None


def _step(prefix_id: str, text: str, label: int | None, found: Mapping[str, Any], value: str) -> ShownStep:
    return ShownStep(
        prefix_id=prefix_id,
        text=text,
        value=found[value],
        low=found["low"],
        high=found["high"],
        sd=found["posterior_sd"],
        n_correct=found["n_correct"],
        n_rollouts=found["n_rollouts"],
        n_ungraded=found["n_ungraded"],
        n_truncated=found["n_truncated"],
        origin=found["origin"],
        label=label,
    )
