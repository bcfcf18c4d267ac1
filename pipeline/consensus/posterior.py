"""The posterior of the place of each chain's first error, and labels from it. Pure."""

from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv

from pipeline.consensus.blocks import blocks_of
from pipeline.consensus.evidence import ChainEvidence
from pipeline.consensus.filters import NEGATIVE, POSITIVE
from pipeline.consensus.learning import STATED, UNLIMITED, UNSURE, Learned, Limits
from pipeline.core.statistics import Floats

CHAINS_AT_A_TIME = 20_000
_TAIL = 0.025
"""The probability that the accuracy is below its lower bound."""


def posterior(evidence: Sequence[ChainEvidence], learned: Learned) -> list[Floats]:
    """For each chain K + 1 probabilities of the places of its first error (see `evidence`).

    Raises ValueError for impossible evidence, and for a witness that nothing is known of.
    """
    model = learned.model
    known = learned.witnesses
    found: list[Floats] = [np.empty(0)] * len(evidence)
    for begin in range(0, len(evidence), CHAINS_AT_A_TIME):
        for block in blocks_of(evidence[begin : begin + CHAINS_AT_A_TIME]):
            if unknown := (block.votes.keys() | block.verdicts.keys()) - known:
                raise ValueError(f"nothing was learned of the witness {sorted(unknown)[0]}")
            for number, places in zip(block.number.tolist(), model.posterior(block), strict=True):
                found[begin + number] = places
    return found


def p_error_free(places: Floats) -> Floats:
    """For each of K steps, P(neither it nor an earlier step has an error): soft targets. `places`: (K + 1,), see `evidence`."""
    # From the end, so that small probabilities of a late error keep their digits.
    return np.minimum(np.cumsum(places[::-1])[::-1][1:], 1.0)


def posterior_labels(places: Floats, certainty: float, limits: Limits = UNLIMITED) -> tuple[int | None, ...]:
    """1 for a step that is error-free with all before it, 0 for the first error, both with at least the probability
    `certainty`, within the `limits`; None for other steps. Raises ValueError unless `certainty` is above 1/2."""
    if not certainty > 0.5:
        raise ValueError(f"certainty must be above 0.5, not {certainty}")
    rows = zip(*(each.tolist() for each in claims(places, limits)), strict=True)
    return tuple(_label(good, bad, certainty) for good, bad in rows)


def claims(places: Floats, limits: Limits) -> tuple[Floats, Floats]:
    """For each step, the claims within the `limits` that it and all before it have no error, and that it is the first."""
    stated = _stated(places)
    bins = np.digitize(stated, STATED)
    free, lost, first = np.maximum(UNSURE, np.take_along_axis(np.array(limits), bins, axis=1))
    return np.clip(stated[0], 1 - lost, free), np.minimum(stated[2], first)


def supported(places: Sequence[Floats], truths: Sequence[int | None]) -> Limits:
    """What the known first errors of some chains support: for each bin, the lower 97.5 % bound of Clopper and Pearson of how
    often such claims are right, or that of a less sure bin, where it is higher. `truths`: places (K: none); None: unknown.

    The steps of a chain are right or wrong together, so each chain counts once in a bin, by its boldest claim there."""
    counts = np.zeros((2, 3, len(STATED) + 1))
    for each, truth in zip(places, truths, strict=True):
        if truth is not None:
            stated, steps = _stated(each), np.arange(len(each) - 1)
            right = np.stack([truth > steps, truth <= steps, truth == steps])
            bins = np.where(stated < UNSURE, -1, np.digitize(stated, STATED))
            for kind, boldest in enumerate((-1, 0, 0)):
                for number in set(bins[kind].tolist()) - {-1}:
                    counts[int(right[kind, np.flatnonzero(bins[kind] == number)[boldest]]), kind, number] += 1
    wrong, good = counts
    bounds = np.where(good > 0, betaincinv(np.maximum(good, 1), wrong + 1, _TAIL), 0.0)
    return tuple(map(tuple, np.maximum.accumulate(bounds, axis=1).tolist()))


def _stated(places: Floats) -> Floats:
    """The kinds of `Limits`, for each step."""
    free = p_error_free(places)
    return np.stack([free, 1 - free, places[:-1]])


def _label(good: float, bad: float, certainty: float) -> int | None:
    if good >= certainty:
        return POSITIVE
    return NEGATIVE if bad >= certainty else None
