"""How sure a consensus may be at most, whatever its model says. Pure."""

from dataclasses import dataclass

import numpy as np

from pipeline.core.statistics import Floats

STATED = (0.8, 0.95)
"""Bounds between the three bins of what is stated; each has a limit of its own."""
UNSURE = 0.5
"""Up to here a probability claims nothing, and is not limited."""
_NO = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The largest probability that may be claimed, for each bin of what is stated. `free`: of no error so far. `lost`: of an
    error so far. `first`: of the first error."""

    free: tuple[float, ...] = _NO
    lost: tuple[float, ...] = _NO
    first: tuple[float, ...] = _NO

    def error_free(self, stated: Floats) -> Floats:
        """(K,) claims that no step so far has an error. `stated`: as `posterior.p_error_free` has them."""
        return np.clip(stated, 1 - _most(1 - stated, self.lost), _most(stated, self.free))

    def first_errors(self, stated: Floats) -> Floats:
        """(K,) claims that a step is the first error."""
        return np.minimum(stated, _most(stated, self.first))


UNLIMITED = Limits()
SHARED = Limits(free=(0.5, 0.8, 0.85), lost=(0.5, 0.6, 0.85), first=(0.5, 0.6, 0.65))
"""The limits where a witness may share Monte Carlo's errors. Where a judge repeats half to all errors of a policy that misses
the place of a third of its first errors, claims of each bin are right at least as often (`tests.bench consensus`)."""


def _most(stated: Floats, limits: tuple[float, ...]) -> Floats:
    return np.asarray(np.maximum(UNSURE, np.array(limits)[np.digitize(stated, STATED)]))
