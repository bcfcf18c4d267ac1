"""The posterior of the place of each chain's first error, and labels from it. Pure."""

from collections.abc import Sequence

import numpy as np

from pipeline.consensus.blocks import blocks_of
from pipeline.consensus.evidence import ChainEvidence
from pipeline.consensus.filters import NEGATIVE, POSITIVE
from pipeline.consensus.learning import Learned
from pipeline.core.statistics import Floats

CHAINS_AT_A_TIME = 20_000


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
