"""What labels say of the tiny policy's prefixes, beside what these are worth by `truth.jsonl`.

The prefixes are those that are sampled, P of them: of each chain all but the whole one, the bare problem first, the chains in
the order of the file. Truth is itself measured, from 2,000 rollouts each.
"""

import json
from dataclasses import astuple, dataclass, fields

import numpy as np
import numpy.typing as npt
import polars as pl

from tests.tiny.policy import TRUTH

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Arrays (P,): which chain a prefix belongs to, its value, the sd of that from so many rollouts, and the tokens of one."""

    ids: tuple[str, ...]
    outcomes: tuple[bool, ...]
    chain: Ints
    value: Floats
    sd: Floats
    rollouts: Ints
    tokens: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Arrays (P,) of what one labelling says; `value` is NaN where `value_rollouts` is 0. `tokens` (C,) of a chain's rollouts."""

    value: Floats
    value_rollouts: Ints
    mean: Floats
    sd: Floats
    low: Floats
    high: Floats
    correct: Ints
    graded: Ints
    tokens: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Extremes:
    """What is wrong with one labelling as a whole: the mean of posterior_mean - V; the sum of its squares over what
    posterior_sd and the truth's own sd claim; right rollouts above the expected number, in standard deviations.

    The last one is a martingale, whoever chose how many rollouts there are, and so has variance 1.
    """

    mean_error: float
    squared_error_over_claim: float
    surplus: float


BOUNDS = Extremes(mean_error=0.05, squared_error_over_claim=4.5, surplus=5.0)
"""Errors along a chain are correlated, so no chi-square table tells how far squares may add up: bounds come from
`python -m tests.tiny.simulated`, where SIMULATED. A
right labelling passes them less than once in 10,000 times. One with values 0.1 too high or too low has a mean error of 0.1, and
one whose chains are read from their ends squared errors of 8 to 13 times the claim."""


def truth() -> Truth:
    rows = [json.loads(line) for line in TRUTH.read_text(encoding="utf-8").splitlines()]
    correct = np.concatenate([row["correct"][:-1] for row in rows])
    rollouts = np.concatenate([[row["n"]] * len(row["steps"]) for row in rows])
    # No 0 where no rollout was right, or all were: so many are not infinitely many.
    likely = (correct + 1) / (rollouts + 2)
    return Truth(
        ids=tuple(row["id"] for row in rows),
        outcomes=tuple(row["outcome"] for row in rows),
        chain=np.repeat(np.arange(len(rows)), [len(row["steps"]) for row in rows]),
        value=correct / rollouts,
        sd=np.sqrt(likely * (1 - likely) / rollouts),
        rollouts=rollouts,
        tokens=np.concatenate([row["tokens"][:-1] for row in rows]),
    )


def told(labels: pl.DataFrame) -> Told:
    """What a labels table of all the chains says."""
    place = {chain: number for number, chain in enumerate(truth().ids)}
    rows = sorted(labels.to_dicts(), key=lambda row: place[row["source_id"]])
    assert [row["source_id"] for row in rows] == list(place)

    def column(name: str) -> list[float | None]:
        return [entry for row in rows for entry in (row[f"root_{name}"], *row[name][:-1])]

    return Told(
        value=np.array(column("value"), dtype=float),
        value_rollouts=np.array(column("value_rollouts")),
        mean=np.array(column("posterior_mean"), dtype=float),
        sd=np.array(column("posterior_sd"), dtype=float),
        low=np.array(column("low"), dtype=float),
        high=np.array(column("high"), dtype=float),
        correct=np.array(column("n_correct")),
        graded=np.array(column("n_rollouts")),
        tokens=np.array([row["rollout_tokens"] for row in rows]),
    )


def extremes(found: Told, known: Truth) -> Extremes:
    error = found.mean - known.value
    surplus = found.correct - found.graded * known.value
    noise = found.graded * known.value * (1 - known.value) + (found.graded * known.sd) ** 2
    return Extremes(
        mean_error=float(error.mean()),
        squared_error_over_claim=float((error**2).sum() / (found.sd**2 + known.sd**2).sum()),
        surplus=float(surplus.sum() / np.sqrt(noise.sum())),
    )


def implausible(found: Told, known: Truth) -> list[str]:
    """How one labelling contradicts the truth, in words; nothing where it does not."""
    seen = extremes(found, known)
    return [
        f"{part.name} is {value:.3f}, and must lie within {bound}"
        for part, bound in zip(fields(BOUNDS), astuple(BOUNDS), strict=True)
        if abs(value := getattr(seen, part.name)) > bound
    ]
