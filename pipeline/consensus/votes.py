"""Likelihood of correlated votes: Dirichlet-multinomial over the places of a chain. Pure.

The votes of a judge on a chain repeat each other. Given the true place, they are draws from Polya's urn: the base measure is
a row of the witness's confusion, and the concentration says how independent they are. With a concentration near 0 all votes
repeat the first and count as one; with a large one they are independent.

In the urn's restaurant each independent draw opens a table, and the other votes sit down at one. The expected number of tables
is what EM learns the confusion from (Teh et al. 2006, section 5, for the tables; Minka 2000 for the maximum).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, psi

from pipeline.core.statistics import Floats, Ints

_MOST_COUNTED = 16
"""Whole votes up to this number are multiplied out, which is faster than the gamma function."""
_LEAST = 1e-12
"""Least mass of a place in the urn."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Patterns:
    """The different votes on chains of K steps. `pattern`, `place`, `count` (E,): the places with votes, pattern by pattern.
    `starts` (U,): where each pattern begins in them. `total` (U,): votes of each pattern."""

    pattern: Ints
    place: Ints
    count: Floats
    starts: Ints
    total: Floats


def patterns_of(votes: Floats) -> Patterns:
    """`votes` (U, K + 1): each row has a vote."""
    pattern, place = np.nonzero(votes)
    starts = np.searchsorted(pattern, np.arange(len(votes)))
    return Patterns(pattern=pattern, place=place, count=votes[pattern, place], starts=starts, total=votes.sum(axis=1))


def log_likelihood(patterns: Patterns, table: Floats, concentration: float) -> Floats:
    """(U, K + 1): of each pattern given the true place, up to a factor that does not depend on the table. `table`: see
    `Confusion.table`."""
    mass = np.maximum(concentration * table.T[patterns.place], _LEAST)
    rows = _sums(_log_rising(mass, patterns.count[:, None]), patterns.starts)
    total = _log_rising(np.full(len(patterns.total), concentration), patterns.total)
    return np.asarray(rows - total[:, None])


def tables(patterns: Patterns, table: Floats, concentration: float, weights: Floats) -> Floats:
    """(K + 1, K + 1): expected number of independent draws of each place, given the true place. `weights` (U, K + 1): how often
    each pattern and true place occur together."""
    mass = np.maximum(concentration * table.T[patterns.place], _LEAST)
    opened = mass * _digamma_rise(mass, patterns.count[:, None])
    opened *= weights[patterns.pattern]
    found = np.zeros((table.shape[1], table.shape[0]))
    order = np.argsort(patterns.place, kind="stable")
    places, begins = np.unique(patterns.place[order], return_index=True)
    found[places] = np.add.reduceat(opened[order], begins, axis=0)
    return found.T


def exposure(patterns: Patterns, concentration: float, weights: Floats) -> float:
    """The expected number of tables is the concentration times this, if it is right."""
    return float(weights.sum(axis=1) @ _digamma_rise(np.full(len(patterns.total), concentration), patterns.total))


def _sums(values: Floats, starts: Ints) -> Floats:
    return np.asarray(np.add.reduceat(values, starts, axis=0))


def _whole(counts: Floats) -> bool:
    return bool(counts.max() <= _MOST_COUNTED) and bool((counts == np.rint(counts)).all())


def _log_rising(mass: Floats, counts: Floats) -> Floats:
    """log of mass (mass + 1) ... (mass + count - 1)."""
    if not _whole(counts):
        return np.asarray(gammaln(mass + counts) - gammaln(mass))
    found = np.log(mass)
    for sat in range(1, int(counts.max())):
        found += np.where(counts > sat, np.log(mass + sat), 0.0)
    return np.asarray(found)


def _digamma_rise(mass: Floats, counts: Floats) -> Floats:
    """1 / mass + 1 / (mass + 1) + ... + 1 / (mass + count - 1)."""
    if not _whole(counts):
        return np.asarray(psi(mass + counts) - psi(mass))
    found = 1 / mass
    for sat in range(1, int(counts.max())):
        found += np.where(counts > sat, 1 / (mass + sat), 0.0)
    return np.asarray(found)
