"""The step scores of a process reward model as a witness: `scores:FILE_OR_FOLDER`, as `score` writes them, for the same chains.

A score says that a step is good, or that a chain ends right from it; both fall at an error. So the claim takes the running
minimum of the scores, which begins at 1, as the probability that no step so far has an error: what it falls by at a step is the
probability that the first error is there, and where it ends is the probability that there is none. With `scores:FILE@0.4` the
claim is the first step with a score below 0.4, or none. A chain with a step without a score has no claim.
"""

import hashlib
import math
import re
from functools import cached_property
from pathlib import Path

from pipeline.consensus.evidence import PositionClaim
from pipeline.core.errors import InputError, UsageError
from pipeline.core.formatting import format_count, listed
from pipeline.core.records import ChainText
from pipeline.storage.score_files import read_scores_of, score_files
from pipeline.witnesses.base import Witness

_KEY = "consensus.witnesses"
_AT = re.compile(r"(?P<path>.+)@(?P<threshold>[0-9]*\.?[0-9]+)")
_MOST_MODELS = 3
_BLOCK = 1 << 20


class ScoresWitness(Witness):
    """See the module."""

    def about(self) -> str:
        models = sorted({model for _, model in self._scores.values()})
        more = [f"{len(models) - _MOST_MODELS} more"] if len(models) > _MOST_MODELS else []
        _, threshold = self._split
        below = "" if threshold is None else f", an error below {threshold:g}"
        named = listed([*models[:_MOST_MODELS], *more])
        return f"step scores of {named} for {format_count(len(self._scores), 'chain')}{below}"

    def digest(self) -> str:
        named, threshold = self._split
        hashed = hashlib.sha256(str(threshold).encode())
        for path in score_files(_KEY, named):
            try:
                with path.open("rb") as file:
                    while block := file.read(_BLOCK):
                        hashed.update(block)
            except OSError as error:
                raise InputError(f"{_KEY}={self.source.name}: {path} cannot be read ({error.strerror})") from error
        return hashed.hexdigest()

    def claim(self, chain: ChainText) -> PositionClaim | None:
        scores, _ = self._scores.get(chain.chain_id, (None, ""))
        if scores is None or len(scores) != len(chain.steps):
            return None
        _, threshold = self._split
        return place_of_fall(scores) if threshold is None else first_below(scores, threshold)

    @cached_property
    def _split(self) -> tuple[Path, float | None]:
        """The path and the threshold."""
        if not self.source.source:
            raise UsageError(f"{_KEY}={self.source.name}: name the scores, as in scores:scores.parquet")
        found = _AT.fullmatch(self.source.source)
        if found is None:
            return Path(self.source.source).expanduser(), None
        threshold = float(found["threshold"])
        if not 0 < threshold <= 1:
            raise UsageError(f"{_KEY}={self.source.name}: the threshold after @ must be above 0 and at most 1")
        return Path(found["path"]).expanduser(), threshold

    @cached_property
    def _scores(self) -> dict[str, tuple[tuple[float, ...] | None, str]]:
        """Chain id -> its step scores and their model. Without scores: a step has none."""
        frame = read_scores_of(_KEY, self._split[0], ("chain_id", "step_scores", "model"))
        return {
            chain: (None if not scores or None in scores or not _shares(scores) else tuple(scores), model or "")
            for chain, scores, model in frame.iter_rows()
        }


def place_of_fall(scores: tuple[float, ...]) -> PositionClaim:
    """The claim of the running minimum of step scores in [0, 1]."""
    votes, right = [], 1.0
    for score in scores:
        lowest = min(right, score)
        votes.append(right - lowest)
        right = lowest
    return PositionClaim(votes=(*votes, right))


def first_below(scores: tuple[float, ...], threshold: float) -> PositionClaim:
    """The claim that the first step with a score below a threshold is the first error."""
    place = next((at for at, score in enumerate(scores) if score < threshold), len(scores))
    return PositionClaim(votes=tuple(float(at == place) for at in range(len(scores) + 1)))


def _shares(scores: list[float]) -> bool:
    return all(math.isfinite(score) and 0 <= score <= 1 for score in scores)
