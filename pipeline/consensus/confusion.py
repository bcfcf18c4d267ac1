"""What is named as the first error, given the true one: a mixture of a few ways to be right or wrong. Pure.

A chain with its first error at step t has these ways (`Way`):

| way | names |
|---|---|
| exact | step t |
| anywhere | any step by habit, step t too: a guess |
| early | a step before t, by habit |
| late | a step after t, by habit |
| none | no error |

A chain without an error has two: none, and an alarm at any step by habit. Where a way is impossible, such as early at the first
step, the others have its probability in their proportion. Counts of ways are then completed by the expected number of times
that the impossible way would have been taken (phantoms), which makes the step of EM exact.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from pipeline.consensus.places import EVEN, Habit
from pipeline.core.statistics import Floats


class Way(StrEnum):
    """See the module."""

    EXACT = "exact"
    ANYWHERE = "anywhere"
    EARLY = "early"
    LATE = "late"
    NONE = "none"
    ALARM = "alarm"


ERROR_WAYS = (Way.EXACT, Way.ANYWHERE, Way.EARLY, Way.LATE, Way.NONE)
FREE_WAYS = (Way.NONE, Way.ALARM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """What can be named. `habit`: see `places`. `last`: the last step can. `none`: "no error" can."""

    habit: Habit = EVEN
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
        phantom = np.concatenate([np.repeat(per_way[:1], 5, 0), np.repeat(per_way[1:], 2, 0)]) * all_ways
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
    habit = support.habit.over(steps) * support.places(steps)[:-1]
    named = np.zeros((len(ERROR_WAYS) + len(FREE_WAYS), steps + 1, steps + 1))
    can = support.places(steps)
    true, place = np.arange(steps)[:, None], np.arange(steps)
    named[0, :steps, :steps] = (true == place) * can[:-1]
    named[1, :steps, :steps] = habit
    named[2, :steps, :steps] = habit * (place < true)
    named[3, :steps, :steps] = habit * (place > true)
    named[4, :steps, steps] = can[-1]
    named[5, steps, steps] = can[-1]
    named[6, steps, :steps] = habit
    total = named.sum(axis=2, keepdims=True)
    np.divide(named, total, out=named, where=total > 0)
    return _Ways(named, (total[:, :, 0] > 0).astype(np.float64))
