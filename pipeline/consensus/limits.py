"""How sure a consensus may be at most, whatever its model says. Pure."""

from collections.abc import Sequence

STATED = (0.8, 0.95)
"""Bounds between the three bins of what is stated; each has a limit of its own."""
UNSURE = 0.5
"""Up to here a probability claims nothing, and is not limited."""
Limits = Sequence[Sequence[float]]
"""The largest claims of no error so far, of an error so far, and of the first error, for each bin of what is stated."""
UNLIMITED: Limits = ((1.0, 1.0, 1.0),) * 3
SHARED: Limits = ((0.5, 0.8, 0.85), (0.5, 0.6, 0.85), (0.5, 0.6, 0.65))
"""The limits where a witness may share Monte Carlo's errors. Where a judge repeats half to all errors of a policy that misses
the place of a third of its first errors, claims of each bin are right at least as often (`tests.bench consensus`)."""
