"""Distributions over the steps of a chain by position relative to its length. Pure."""

from functools import lru_cache

import numpy as np

from pipeline.core.statistics import Floats

BINS = 5
"""Equal parts of a chain, from its first to its last step, in which errors are equally likely."""


@lru_cache(maxsize=1024)
def densities(steps: int) -> Floats:
    """(K, BINS): the probability of each step, given the part of the chain. A step that two parts share has a share of both."""
    ends = np.arange(steps + 1) / steps
    edges = np.arange(BINS + 1) / BINS
    low, high = np.maximum(ends[:-1, None], edges[:-1]), np.minimum(ends[1:, None], edges[1:])
    return np.asarray(np.maximum(high - low, 0.0) * BINS)
