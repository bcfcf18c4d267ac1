"""What is named as the first error, given the true one: a mixture of a few ways to be right or wrong. Pure.

A chain with its first error at step t has these ways (`Way`):

| way | names |
|---|---|
| exact | step t |
| anywhere | any step, each as likely, step t too: a guess |
| first, last | the first step, the last one: a habit |
| early | a step before t, each as likely |
| late | a step after t, each as likely |
| none | no error |

A chain without an error has four: none, an alarm at any step, first and last. Where a way is impossible, such as early at the
first step, the others have its probability in their proportion. Counts of ways are then completed by the expected number of
times that the impossible way would have been taken (phantoms), which makes the step of EM exact.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from pipeline.core.statistics import Floats


class Way(StrEnum):
    """See the module."""

    EXACT = "exact"
    ANYWHERE = "anywhere"
    FIRST = "first"
    LAST = "last"
    EARLY = "early"
    LATE = "late"
    NONE = "none"
    ALARM = "alarm"


ERROR_WAYS = (Way.EXACT, Way.ANYWHERE, Way.FIRST, Way.LAST, Way.EARLY, Way.LATE, Way.NONE)
FREE_WAYS = (Way.NONE, Way.ALARM, Way.FIRST, Way.LAST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """What can be named. `last`: the last step can. `none`: "no error" can."""

    last: bool = True
    none: bool = True

    def places(self, steps: int) -> Floats:
        """1 for each of the K + 1 places that can be named, else 0."""
        found = np.ones(steps + 1)
        found[steps - 1] = float(self.last)
        found[steps] = float(self.none)
        return found


ANY = Support()


@dataclass(frozen=True, slots=True, eq=False)
class _Ways:
    """`named` (ways, K + 1 true places, K + 1 named places): the distribution of what is named; all 0 where a way is
    impossible. `possible` (ways, K + 1)."""

    named: Floats
    possible: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """Probabilities of the ways: `error` in the order of `ERROR_WAYS`, `free` in that of `FREE_WAYS`."""

    error: Floats
    free: Floats
    support: Support = ANY

    def table(self, steps: int) -> Floats:
        """(K + 1, K + 1): the probability of each named place, given the true one."""
        ways, shares = _ways(steps, self.support), self._shares(steps)
        return np.asarray(np.einsum("wt,wtj->tj", shares, ways.named))

    def counts(self, steps: int, named: Floats) -> tuple[Floats, Floats]:
        """Expected counts of the ways for errors and for chains without one, phantoms included. `named`: how often each place
        is named for each true place, (K + 1, K + 1)."""
        ways, shares = _ways(steps, self.support), self._shares(steps)
        table = np.einsum("wt,wtj->tj", shares, ways.named)
        per_unit = np.divide(named, table, out=np.zeros_like(named), where=table > 0)
        taken = np.einsum("tj,wtj->wt", per_unit, ways.named) * shares
        all_ways = np.concatenate([self.error, self.free])[:, None]
        possible = np.stack([(all_ways * ways.possible)[part].sum(axis=0) for part in (_OF_ERROR, _OF_FREE)])
        sums = np.stack([taken[part].sum(axis=0) for part in (_OF_ERROR, _OF_FREE)])
        per_way = np.divide(sums, possible, out=np.zeros_like(sums), where=possible > 0)
        # Only where the part is asked at all: errors for the first K true places, the other for the last.
        phantom = np.repeat(per_way, (len(ERROR_WAYS), len(FREE_WAYS)), axis=0) * all_ways
        full = (taken + np.where(ways.possible > 0, 0.0, phantom)).sum(axis=1)
        return full[_OF_ERROR], full[_OF_FREE]

    def _shares(self, steps: int) -> Floats:
        """(ways, K + 1): the probability of each way, given the true place."""
        ways = _ways(steps, self.support)
        weights = np.concatenate([self.error, self.free])[:, None] * ways.possible
        for part in (_OF_ERROR, _OF_FREE):
            total = weights[part].sum(axis=0)
            weights[part] = np.divide(weights[part], total, out=np.zeros_like(weights[part]), where=total > 0)
        return np.asarray(weights)


_OF_ERROR, _OF_FREE = slice(0, len(ERROR_WAYS)), slice(len(ERROR_WAYS), None)


@lru_cache(maxsize=256)
def _ways(steps: int, support: Support) -> _Ways:
    true, place = np.arange(steps + 1)[:, None], np.arange(steps + 1)
    on_step = place < steps
    where = {
        Way.EXACT: true == place,
        Way.ANYWHERE: on_step,
        Way.ALARM: on_step,
        Way.FIRST: place == 0,
        Way.LAST: place == steps - 1,
        Way.EARLY: place < true,
        Way.LATE: (place > true) & on_step,
        Way.NONE: place == steps,
    }
    has_error = true < steps
    asked = [(way, has_error) for way in ERROR_WAYS] + [(way, ~has_error) for way in FREE_WAYS]
    named = np.array([(where[way] & part) * support.places(steps) for way, part in asked])
    total = named.sum(axis=2, keepdims=True)
    np.divide(named, total, out=named, where=total > 0)
    return _Ways(named, (total[:, :, 0] > 0).astype(np.float64))
