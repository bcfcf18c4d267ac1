"""The order in which chains are trained on: random, but chains of a batch are of like length, which leaves little padding."""

import random
from collections.abc import Iterator, Sequence

BATCHES_SORTED = 50
"""Batches whose chains are drawn together and then dealt out by length."""


class LikeLengths:
    """A sampler for `torch.utils.data.DataLoader`. The order depends on `seed` and epoch alone, so that training can go on
    anywhere."""

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        self._lengths = lengths
        self._batch = batch
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        rng = random.Random(f"{self._seed}-{self._epoch}")
        drawn = list(range(len(self._lengths)))
        rng.shuffle(drawn)
        together = self._batch * BATCHES_SORTED
        batches = [
            batch for start in range(0, len(drawn), together) for batch in self._dealt(drawn[start : start + together])
        ]
        rng.shuffle(batches)
        # A smaller batch in between would shift all that follow.
        batches.sort(key=lambda batch: len(batch) < self._batch)
        return (index for batch in batches for index in batch)

    def _dealt(self, drawn: Sequence[int]) -> list[list[int]]:
        ordered = sorted(drawn, key=lambda index: self._lengths[index])
        return [ordered[start : start + self._batch] for start in range(0, len(ordered), self._batch)]
