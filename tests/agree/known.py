"""True values of the figures of `agree scores=...` on chains whose scores come from a known law.

Steps that people call good have scores with density 2x, bad ones 2(1 - x), independent of each other. One chain in two has
a first error, each of the STEPS steps equally likely, and its later steps are like bad ones. In chains with a class, as of
PRMBench, each step is bad with probability BAD. At a threshold of 1/2 a good step is called good with probability 3/4, a
bad one bad as often.
"""

import numpy as np

STEPS = 4
BAD = 0.3
THRESHOLD = 0.5
_KEPT = 1 - THRESHOLD**2
"""The probability that a good step is called good, and that a bad one is called bad."""
FOUND = float(np.mean([_KEPT**error * _KEPT for error in range(STEPS)]))
CLEARED = _KEPT**STEPS
F1 = 2 * FOUND * CLEARED / (FOUND + CLEARED)
AUC = 5 / 6
BRIER = 1 / 6
PRM_SCORE = (
    2 * (1 - BAD) * _KEPT / (2 * (1 - BAD) * _KEPT + (1 - _KEPT)) + 2 * BAD * _KEPT / (2 * BAD * _KEPT + (1 - _KEPT))
) / 2
