"""What students of a run that has grown came to, beside others for as many tokens, as text. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.core.statistics import Interval, bootstrap, mean
from tests.loop.spread import mean_of

Result = Mapping[str, Any]
Votes = Mapping[str, Sequence[float]]
LARGEST = 16
WAYS = ("best last", "best min", "best product", "best mean", "weighted last", "weighted product")
"""How one of the candidates is chosen by scores."""
AUC = "step_auc"
"""How well scores rank steps that are right by arithmetic."""


def arms_table(results: Sequence[Result], votes: Votes, arms: Sequence[str]) -> Iterator[str]:
    """What each arm learned from, and its accuracy among all candidates: mean over seeds +- its standard error."""
    majority, bound = (float(np.mean(votes[f"{name} {LARGEST}"])) for name in ("majority", "bound"))
    yield (
        f"right among {LARGEST} candidates of {len(votes['random'])} problems; random {np.mean(votes['random']):.3f}, "
        f"majority {majority:.3f}, bound {bound:.3f}"
    )
    yield _line("learned from", ["seeds", "tokens", "chains", "grown", "step labels", "prefixes", *WAYS, "step AUC"])
    for arm in arms:
        found = list(_of_arm(results, arm).values())
        if found:
            sizes = (float(np.mean([each[name] for each in found])) for name in _SIZES)
            figures = (mean_of([_figure(each, name) for each in found]) for name in (*WAYS, AUC))
            yield _line(
                arm,
                [
                    str(len(found)),
                    *(f"{size:,.0f}" for size in sizes),
                    *(
                        f"{mean.value:.3f}" + ("" if np.isnan(mean.error) else f" +- {mean.error:.3f}")
                        for mean in figures
                    ),
                ],
            )


def differences_table(results: Sequence[Result], base: str, arms: Sequence[str]) -> Iterator[str]:
    """What each other arm gains over `base` on the same seeds."""
    own = _of_arm(results, base)
    yield (
        f"minus {base}, on the same seeds, with 95 % intervals: first Student's t over seeds, then the bootstrap over the "
        "problems to choose for, of the mean over seeds"
    )
    yield _line("learned from", ["seeds", *WAYS, "step AUC"])
    for arm in arms:
        pairs = [(each, own[seed]) for seed, each in _of_arm(results, arm).items() if seed in own]
        if pairs and arm != base:
            yield _line(arm, [str(len(pairs)), *(_gain(pairs, name) for name in (*WAYS, AUC))])


_SIZES = ("tokens", "chains", "grown", "targets", "prefixes")


def _of_arm(results: Sequence[Result], arm: str) -> dict[int, Result]:
    """By seed."""
    return {each["seed"]: each for each in results if each["arm"] == arm}


def _figure(result: Result, name: str) -> float:
    return float(result[AUC] if name == AUC else result["means"][f"{name} {LARGEST}"])


def _gain(pairs: Sequence[tuple[Result, Result]], name: str) -> str:
    gains = [_figure(this, name) - _figure(base, name) for this, base in pairs]
    over_seeds = mean(np.arange(len(gains)), np.array(gains))
    shown = f"{over_seeds.value:+.3f}{_shown(over_seeds)}"
    if name == AUC:
        return shown
    by_problem = [
        np.subtract(this["by_problem"][f"{name} {LARGEST}"], base["by_problem"][f"{name} {LARGEST}"])
        for this, base in pairs
    ]
    return shown + _shown(bootstrap(np.mean(by_problem, axis=0)[:, None], seed=0)[0])


def _shown(interval: Interval) -> str:
    return "" if interval.low is None else f" ({interval.low:+.3f} to {interval.high:+.3f})"


def _line(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"
