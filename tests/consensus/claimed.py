"""What a consensus claims of the first errors of chains, within limits, against the truth."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.consensus.learning import STATED, UNSURE, Limits
from pipeline.consensus.posterior import claims, p_error_free
from pipeline.core.statistics import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """Of the claims of a kind in a bin of what is stated: means of what is stated and claimed, and how often it is `right`,
    with the standard error over `chains`."""

    kind: str
    bin: int
    stated: float
    claimed: float
    right: float
    error: float
    chains: int

    @property
    def too_much(self) -> bool:
        """Whether anything is claimed, and more than is right by more than two standard errors."""
        return self.claimed > UNSURE and self.claimed > self.right + 2 * self.error


def claimed(places: Sequence[Floats], truth: Ints, limits: Limits) -> Iterator[Claimed]:
    rows: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for each, true in zip(places, truth.tolist(), strict=True):
        free, steps = p_error_free(each), np.arange(len(each) - 1)
        within, first = claims(each, limits)
        for kind, stated, claim, right in (
            ("free", free, within, true > steps),
            ("lost", 1 - free, 1 - within, true <= steps),
            ("first", each[:-1], first, true == steps),
        ):
            for number in range(len(STATED) + 1):
                own = (stated >= UNSURE) & (np.digitize(stated, STATED) == number)
                if own.any():
                    row = stated[own].mean(), claim[own].mean(), right[own].mean()
                    rows.setdefault((kind, number), []).append(row)
    for (kind, number), found in sorted(rows.items()):
        stated, claim, right = np.mean(found, axis=0).tolist()
        # Without a single error the variance is that of one.
        error = float(np.sqrt(max(right * (1 - right), 1 / len(found)) / len(found)))
        yield Claimed(kind=kind, bin=number, stated=stated, claimed=claim, right=right, error=error, chains=len(found))
