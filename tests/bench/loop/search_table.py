"""What searches of several runs come to, in one table. Pure.

A run has a PRM and problems of its own, so the searches of all runs by one method are taken together: intervals are over
problems.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from pipeline.analysis.searches.equal_tokens import at_equal_tokens
from pipeline.analysis.searches.figures import EqualTokens, RunSummary, SearchRun, means_of, summary
from pipeline.analysis.select.methods import Method, compare_methods
from pipeline.core.statistics import Interval
from pipeline.train.result import auc
from tests.bench.loop.tables import mean_of

SEED = 0
"""Of resamples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A method at an n. `of_runs`: the accuracy of each run. `bound`: how often one of its candidates is right. `equal`:
    against the best of as many chains as cost the same."""

    found: RunSummary
    of_runs: tuple[float, ...]
    bound: float
    equal: EqualTokens


def pooled(runs: Sequence[SearchRun]) -> SearchRun:
    """The searches of one method in all runs, as one run. Raises ValueError where two runs have a problem in common."""
    searches = pl.concat([run.searches for run in runs])
    if searches["problem_id"].n_unique() < searches.height:
        raise ValueError("two runs have a problem in common")
    return replace(runs[0], searches=searches)


def line_of(runs: Sequence[SearchRun], chains: Sequence[SearchRun]) -> Line:
    """`runs`: of one method at one n. `chains`: pooled runs of best-of-n, from small to large n, of which the first one with
    enough chains is compared with. Of many chains more are equal, and scored once, so that each costs less: a larger run would
    make the smaller one too cheap."""
    every = pooled(runs)
    compared = [at_equal_tokens(every, run, SEED) for run in chains]
    return Line(
        found=summary(every, SEED),
        of_runs=tuple(float(np.nanmean(means_of(run.searches, "right"))) for run in runs),
        bound=float(np.mean(every.searches["outcomes"].list.any().fill_null(value=False))),
        equal=next((each for each in compared if each.in_range), compared[-1]),
    )


def lines(found: Sequence[Line]) -> Iterator[str]:
    """The table. Tokens are means for a problem."""
    yield (
        f"{'method':<12}{'n':>4}{'right':>21}{'+- over runs':>14}{'bound':>7}{'policy':>9}{'PRM':>9}{'in all':>9}"
        f"{'k':>7}{'best of k':>11}{'minus best of k':>25}"
    )
    for line in found:
        of, equal = line.found, line.equal
        yield (
            f"{of.method:<12}{of.n:>4}{shown(of.accuracy):>21}{_errors(line.of_runs):>14}{line.bound:>7.3f}"
            f"{of.policy_tokens:>9,.0f}{of.scorer_tokens:>9,.0f}{of.total_tokens:>9,.0f}"
            f"{equal.k:>7.1f}{_best(equal):>11}{_difference(equal):>25}"
        )


def exact_lines(chains: pl.DataFrame, sizes: Sequence[int]) -> Iterator[str]:
    """What n of the chains of best-of-n achieve in expectation: less noise than one draw of n has."""
    methods = {
        "best of n": Method.prm,
        "weighted vote": Method.weighted,
        "majority vote": Method.majority,
        "bound": Method.oracle,
    }
    yield f"{'n':>4}" + "".join(f"{name:>21}" for name in methods)
    for of in compare_methods(chains, sizes, SEED):
        yield f"{of.n:>4}" + "".join(f"{shown(of.accuracy[method]):>21}" for method in methods.values())


def scorer_auc(run: SearchRun) -> float:
    """How the scores of candidates rank right ones above wrong ones: the area under the curve. Those without a score do not
    count."""
    chains = run.searches.select("scores", "outcomes").explode("scores", "outcomes").drop_nulls("scores")
    area = auc(chains["scores"].to_list(), chains["outcomes"].fill_null(value=False).to_list())
    return float("nan") if area is None else area


def shown(found: Interval, sign: str = "") -> str:
    if found.low is None or found.high is None:
        return "-" if found.value is None else f"{found.value:{sign}.3f}"
    return f"{found.value:{sign}.3f} ({found.low:{sign}.2f} to {found.high:{sign}.2f})"


def _errors(of_runs: Sequence[float]) -> str:
    return f"{mean_of(of_runs).error:.3f}" if len(of_runs) > 1 else "-"


def _best(equal: EqualTokens) -> str:
    return f"{equal.best_of_k.value:.3f}" if equal.best_of_k.value is not None else "-"


def _difference(equal: EqualTokens) -> str:
    return shown(equal.difference, "+") if equal.in_range else "out of range"
