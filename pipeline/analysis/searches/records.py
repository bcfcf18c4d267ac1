"""What the analyses of `search` begin with: a run, with a row for the search of each problem, and means over problems. Pure.

Accuracy is claimed only where the answer is known and the chosen answer is graded. A search that ends without a chain, or with
a chain without an answer, is wrong there.

Problems are the sampling units. A problem with several searches counts once, with their mean. A problem for which a figure is
not defined (NaN) is left out of it. So the difference of two columns is over the problems that have both, and is paired.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from pipeline.core.statistics import CONFIDENCE, RESAMPLES, Floats, Interval, Resampling, ratio, share, wilson


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchRun:
    """A finished run of `search`. `accept`: `search.accept`. `calibrated`: its scores are probabilities. `independent`: its
    candidates are chains that were sampled whole and without regard to each other, a fixed number for each problem. So a part
    of them is what a smaller run would have. `settings`: what determines it, by dotted key.

    `searches`: see `read.finished_searches`; a problem may have several, such as one for each chain that the input has. Of the
    candidates of each, lists: `scores`, and `outcomes`, null where one is not graded. `texts`: how many candidates have the
    same text of a whole chain, and `computed`: the tokens that the scorer computed for it, which it does once; 0 where that is
    not known."""

    name: str
    method: str
    n: int
    accept: float | None
    calibrated: bool
    independent: bool
    settings: Mapping[str, object]
    searches: pl.DataFrame

    @property
    def scored(self) -> bool:
        """Whether any candidate has a score."""
        return self.searches["scores"].explode().count() > 0

    @property
    def given(self) -> int:
        """Searches that begin with a chain of the input."""
        return int(self.searches["given"].sum())

    def means(self, *values: str | pl.Expr) -> Floats:
        """The means of values over the searches of each problem, see `problem_means`."""
        return means_of(self.searches, *values)


def means_of(searches: pl.DataFrame, *values: str | pl.Expr) -> Floats:
    """`SearchRun.means` of rows of `SearchRun.searches`."""
    columns = [pl.col(each) if isinstance(each, str) else each for each in values]
    found = searches.select(column.cast(pl.Float64).alias(str(at)) for at, column in enumerate(columns))
    return problem_means(searches["problem_id"].to_list(), found.to_numpy())


_ROUNDING = 1e-9


def problem_means(problem_ids: Sequence[str], values: Floats) -> Floats:
    """The means of the rows of `values` (rows, columns) that are of one problem: (problems, columns), sorted by the problems'
    ids. NaN does not count; a mean of nothing is NaN."""
    problems, place = np.unique(np.asarray(problem_ids, dtype=np.str_), return_inverse=True)
    defined = ~np.isnan(values)
    sums, counts = np.zeros((len(problems), values.shape[1])), np.zeros((len(problems), values.shape[1]))
    np.add.at(sums, place, np.where(defined, values, 0.0))
    np.add.at(counts, place, defined)
    return share(sums, counts)


def mean_over(values: Floats, seed: int) -> Interval:
    """The mean of `values` (problems,) with its bootstrap interval."""
    defined = ~np.isnan(values)
    columns = np.column_stack([np.where(defined, values, 0.0), defined])[defined]
    return resampling(seed).estimate(columns, ratio)


def share_over(values: Floats, seed: int) -> Interval:
    """`mean_over` of values that are shares; see `with_ends`."""
    return with_ends(mean_over(values, seed), int((~np.isnan(values)).sum()))


def with_ends(figure: Interval, problems: int) -> Interval:
    """A share of 0 or 1 with Wilson's interval (1927); any other one as it is. Where all problems have something, or none has,
    their resamples are all equal, which does not say what else the share may be."""
    value = figure.value
    if value is None or figure.low is not None or not problems or min(value, 1 - value) > _ROUNDING:
        return figure
    low, high = wilson(round(value) * problems, problems, CONFIDENCE)
    return Interval(value=value, low=low, high=high)


def resampling(seed: int) -> Resampling:
    """The bootstrap over problems."""
    return Resampling(replicates=RESAMPLES, seed=seed, confidence=CONFIDENCE)
