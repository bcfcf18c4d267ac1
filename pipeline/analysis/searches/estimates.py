"""Means over problems, with intervals. Pure.

Problems are the sampling units. A problem with several searches counts once, with their mean. A problem for which a figure is
not defined (NaN) is left out of it. So the difference of two columns is over the problems that have both, and is paired.
"""

from collections.abc import Sequence

import numpy as np

from pipeline.core.statistics import CONFIDENCE, RESAMPLES, Floats, Interval, Resampling, ratio, share, wilson

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
