"""Labels from the posterior of the place of the first error. Pure."""

import numpy as np

from pipeline.consensus.filters import NEGATIVE, POSITIVE
from pipeline.core.statistics import Floats


def p_error_free(places: Floats) -> Floats:
    """For each of K steps, P(neither it nor an earlier step has an error): soft targets. `places`: (K + 1,), see `evidence`."""
    # From the end, so that small probabilities of a late error keep their digits.
    return np.minimum(np.cumsum(places[::-1])[::-1][1:], 1.0)


def posterior_labels(places: Floats, certainty: float) -> tuple[int | None, ...]:
    """1 for a step that is error-free with all before it, 0 for the first error, both with at least the probability
    `certainty`; None for other steps. Raises ValueError unless `certainty` is above 1/2."""
    if not certainty > 0.5:
        raise ValueError(f"certainty must be above 0.5, not {certainty}")
    free = p_error_free(places)
    return tuple(_label(good, bad, certainty) for good, bad in zip(free.tolist(), places[:-1].tolist(), strict=True))


def _label(good: float, bad: float, certainty: float) -> int | None:
    if good >= certainty:
        return POSITIVE
    return NEGATIVE if bad >= certainty else None
