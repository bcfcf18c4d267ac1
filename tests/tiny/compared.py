"""What labels say of a tiny policy's prefixes, beside what these are worth by its file of truth.

The prefixes are those that are sampled, P of them: of each chain all but the whole one, the bare problem first, the chains in
the order of the file. Truth is itself measured, from 2,000 rollouts each.
"""

import json
from dataclasses import astuple, dataclass, fields

import numpy as np
import numpy.typing as npt
import polars as pl

from tests.tiny.policy import LONG, SHORT, TinyPolicy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Arrays (P,): which chain a prefix belongs to, its value, the sd of its estimate, and the tokens of one."""

    policy: str
    ids: tuple[str, ...]
    outcomes: tuple[bool, ...]
    chain: Ints
    value: Floats
    sd: Floats
    rollouts: Ints
    tokens: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """Arrays (P,) of what one labelling says; `unbiased` is NaN where `unbiased_rollouts` is 0. `tokens` (C,) are a chain's."""

    unbiased: Floats
    unbiased_rollouts: Ints
    mean: Floats
    sd: Floats
    low: Floats
    high: Floats
    correct: Ints
    graded: Ints
    tokens: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Extremes:
    """How far one labelling as a whole is off: median and root mean square of value - V, and right rollouts above
    the expected number, in standard deviations.

    The last one is a martingale, whoever chose how many rollouts there are, and so has variance 1.
    """

    median_error: float
    rms_error: float
    surplus: float


BOUNDS = {
    SHORT.name: (
        Extremes(median_error=-0.05, rms_error=0.0, surplus=-5.0),
        Extremes(median_error=0.05, rms_error=0.2, surplus=5.0),
    ),
    LONG.name: (
        Extremes(median_error=-0.05, rms_error=0.0, surplus=-5.0),
        Extremes(median_error=0.085, rms_error=0.15, surplus=5.0),
    ),
}
"""The least and the most that a right labelling has: it is beyond them less than once in 10,000 times. Errors along a chain
are correlated, so no table says how far they may go. `python -m tests.tiny.simulated short 4000` does: 0.024, 0.155
and 3.6 at most, with standard deviations of 0.003, 0.014 and 1. With all values 0.1 too high or too low the median is
beyond 0.07, and with chains read from their ends, or one prefix late, the root mean square beyond 0.25. (The median,
because the errors of lost prefixes, nearly half of all, are small; the sum of squares over what value_sd claims has too
long a tail.)

Of 600 labellings of the long chains the most are 0.032, 0.119 and 3.3; one prefix late is beyond 0.16. The real engine's
rollouts, which often write the next step of their chain, make the median larger: 0.024 in the mean of 12 labellings, 0.051
at most, with a standard deviation of 0.011. More of these chains are right than their values let expect, and the kernel
learns from that."""


def truth(policy: TinyPolicy = SHORT) -> Truth:
    rows = [json.loads(line) for line in policy.truth.read_text(encoding="utf-8").splitlines()]
    correct = np.concatenate([row["correct"][:-1] for row in rows])
    rollouts = np.concatenate([[row["n"]] * len(row["steps"]) for row in rows])
    # No 0 where no rollout was right, or all were: a finite number of rollouts does not prove 0 or 1.
    likely = (correct + 1) / (rollouts + 2)
    return Truth(
        policy=policy.name,
        ids=tuple(row["id"] for row in rows),
        outcomes=tuple(row["outcome"] for row in rows),
        chain=np.repeat(np.arange(len(rows)), [len(row["steps"]) for row in rows]),
        value=correct / rollouts,
        sd=np.sqrt(likely * (1 - likely) / rollouts),
        rollouts=rollouts,
        tokens=np.concatenate([row["tokens"][:-1] for row in rows]),
    )


def shown(labels: pl.DataFrame, policy: TinyPolicy = SHORT) -> Printed:
    """What a labels table of all the chains says."""
    place = {chain: number for number, chain in enumerate(truth(policy).ids)}
    rows = sorted(labels.to_dicts(), key=lambda row: place[row["source_id"]])
    assert [row["source_id"] for row in rows] == list(place)

    def column(name: str) -> list[float | None]:
        return [entry for row in rows for entry in (row[f"root_{name}"], *row[name][:-1])]

    return Printed(
        unbiased=np.array(column("unbiased_value"), dtype=float),
        unbiased_rollouts=np.array(column("unbiased_rollouts")),
        mean=np.array(column("value"), dtype=float),
        sd=np.array(column("value_sd"), dtype=float),
        low=np.array(column("low"), dtype=float),
        high=np.array(column("high"), dtype=float),
        correct=np.array(column("n_correct")),
        graded=np.array(column("n_rollouts")),
        tokens=np.array([row["rollout_tokens"] for row in rows]),
    )


def extremes(found: Printed, known: Truth) -> Extremes:
    error = found.mean - known.value
    surplus = found.correct - found.graded * known.value
    noise = found.graded * known.value * (1 - known.value) + (found.graded * known.sd) ** 2
    return Extremes(
        median_error=float(np.median(error)),
        rms_error=float(np.sqrt((error**2).mean())),
        surplus=float(surplus.sum() / np.sqrt(noise.sum())),
    )


def implausible(found: Printed, known: Truth) -> list[str]:
    """How one labelling contradicts the truth, in words; nothing where it does not."""
    seen, (least, most) = extremes(found, known), BOUNDS[known.policy]
    return [
        f"{part.name} is {value:.3f}, and must lie between {low} and {high}"
        for part, value, low, high in zip(fields(Extremes), astuple(seen), astuple(least), astuple(most), strict=True)
        if not low <= value <= high
    ]
