"""The posterior of the place of each chain's first error. Pure."""

from collections.abc import Sequence

import numpy as np

from pipeline.consensus.blocks import blocks_of
from pipeline.consensus.evidence import ChainEvidence
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
