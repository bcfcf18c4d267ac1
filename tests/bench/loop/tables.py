"""The results of an experiment as text: a result holds what a student of an arm with a seed chose. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pipeline.analysis.comparison import bootstrap_means, mean
from pipeline.core.statistics import Interval

Result = Mapping[str, Any]
Votes = Mapping[str, Sequence[float]]
WAYS = ("best last", "best min", "best product", "best mean", "weighted last", "weighted product")
"""How one of the candidates is chosen by scores."""
SIZES = (4, 8, 16)
LARGEST = 16
COUNTS = ("chains", "tokens", "grown", "targets", "prefixes")
"""What an arm learned from."""
AUCS = ("step_auc", "last_auc")
"""How well scores rank steps that are right by arithmetic, and last scores right chains."""


class Mean(NamedTuple):
    """The mean over seeds, and its standard error (NaN for one seed)."""

    value: float
    error: float

    def text(self, sign: str = "") -> str:
        return f"{self.value:{sign}.3f}" + ("" if np.isnan(self.error) else f" +- {self.error:.3f}")


def mean_of(values: Sequence[float]) -> Mean:
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return Mean(float(np.mean(values)), float(error))


def arms_table(results: Sequence[Result], votes: Votes, arms: Sequence[str]) -> Iterator[str]:
    """What each arm learned from, and its accuracy among all candidates: mean over seeds +- its standard error."""
    majority, bound = (float(np.mean(votes[f"{name} {LARGEST}"])) for name in ("majority", "bound"))
    yield (
        f"right among {LARGEST} candidates of {len(votes['random'])} problems; random {np.mean(votes['random']):.3f}, "
        f"majority {majority:.3f}, bound {bound:.3f}"
    )
    counts = [name for name in COUNTS if any(name in each for each in results)]
    yield _line("learned from", ["seeds", *counts, *WAYS, *AUCS])
    for arm in arms:
        if found := list(_by_seed(results, arm).values()):
            sizes = (f"{np.mean([each[name] for each in found]):,.0f}" for name in counts)
            yield _line(arm, [str(len(found)), *sizes, *(_mean(found, name) for name in (*WAYS, *AUCS))])


def ceiling_line(by_arithmetic: Mapping[str, float]) -> Iterator[str]:
    """`by_arithmetic`: like `means` of a result, with the share of the steps that are right so far as the score."""
    yield "a perfect checker of steps, by the number of candidates: " + ", ".join(
        f"{n}: {by_arithmetic[f'best mean {n}']:.3f}" for n in SIZES
    )


def leads_table(results: Sequence[Result], votes: Votes, arm: str) -> Iterator[str]:
    """How far ahead of majority vote each way to choose is, by the number of candidates. With all candidates, also the standard
    error from the problems, which all seeds have in common."""
    found = list(_by_seed(results, arm).values())
    yield f"{arm}: accuracy minus majority vote, mean of {len(found)} seeds +- standard error over seeds"
    yield _line("n", WAYS)
    for n in SIZES if found else ():
        majority = float(np.mean(votes[f"majority {n}"]))
        yield _line(
            str(n), [mean_of([each["means"][f"{way} {n}"] - majority for each in found]).text("+") for way in WAYS]
        )
    yield _line(
        f"{LARGEST}: error from the problems", [f"+- {_of_problems(found, votes, way):.3f}" for way in WAYS if found]
    )


def _of_problems(found: Sequence[Result], votes: Votes, way: str) -> float:
    ahead = np.array([each["by_problem"][f"{way} {LARGEST}"] for each in found]) - np.array(
        votes[f"majority {LARGEST}"]
    )
    return float(ahead.mean(axis=0).std(ddof=1) / ahead.shape[1] ** 0.5)


def differences_table(results: Sequence[Result], base: str, arms: Sequence[str]) -> Iterator[str]:
    """What each other arm gains over `base` on the same seeds."""
    own = _by_seed(results, base)
    yield (
        f"minus {base}, on the same seeds, with 95 % intervals: first Student's t over seeds, then the bootstrap over the "
        "problems to choose for, of the mean over seeds"
    )
    yield _line("learned from", ["seeds", *WAYS, AUCS[0]])
    for arm in arms:
        pairs = [(each, own[seed]) for seed, each in _by_seed(results, arm).items() if seed in own]
        if pairs and arm != base:
            yield _line(arm, [str(len(pairs)), *(_gain(pairs, name) for name in (*WAYS, AUCS[0]))])


def _gain(pairs: Sequence[tuple[Result, Result]], name: str) -> str:
    if not all(_has(each, name) for pair in pairs for each in pair):
        return "-"
    gains = np.array([_figure(this, name) - _figure(base, name) for this, base in pairs])
    over_seeds = mean(np.arange(len(gains)), gains)
    shown = f"{over_seeds.value:+.3f}{_shown(over_seeds)}"
    if name in AUCS:
        return shown
    place = f"{name} {LARGEST}"
    by_problem = np.mean(
        [np.subtract(this["by_problem"][place], base["by_problem"][place]) for this, base in pairs], axis=0
    )
    return shown + _shown(bootstrap_means(by_problem[:, None], seed=0)[0])


def _by_seed(results: Sequence[Result], arm: str) -> dict[int, Result]:
    return {each["seed"]: each for each in results if each["arm"] == arm}


def _has(result: Result, name: str) -> bool:
    """An ORM has no scores of steps, so other ways than by its last score say nothing."""
    return name in AUCS or f"{name} {LARGEST}" in result["means"]


def _figure(result: Result, name: str) -> float:
    return float(result[name] if name in AUCS else result["means"][f"{name} {LARGEST}"])


def _mean(found: Sequence[Result], name: str) -> str:
    return mean_of([_figure(each, name) for each in found]).text() if _has(found[0], name) else "-"


def _shown(interval: Interval) -> str:
    return "" if interval.low is None else f" ({interval.low:+.3f} to {interval.high:+.3f})"


def _line(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"
