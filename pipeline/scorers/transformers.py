"""The scoring engine of transformers: a model in this process, in batches of chains of similar length.

It computes whole chains each time and keeps nothing between calls. A search, which scores a chain after every step, is faster
with vLLM's prefix cache.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from pipeline.core.errors import EngineDied
from pipeline.core.records import ChainText
from pipeline.scorers.base import StepScores
from pipeline.scorers.encoding import pad_id_of
from pipeline.scorers.model import ModelScorer, scores_at
from pipeline.scorers.prepared import Prepared, prepare

_CAPACITY = 2048
"""Chains that are sorted by length and scored together: enough that batches waste little padding."""


class TransformersEngine:
    """See the module. `newest_only`: see `Scorer.engine`."""

    capacity = _CAPACITY

    def __init__(self, scorer: ModelScorer, *, newest_only: bool = False) -> None:
        self._scorer = scorer
        self._newest_only = newest_only
        self._model: Any = None
        self._prepared: Prepared | None = None
        self._turn = asyncio.Lock()
        self.model = scorer.name

    async def start(self) -> None:
        await asyncio.to_thread(self._load)

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        async with self._turn:
            return await asyncio.to_thread(self._scores, chains)

    async def close(self) -> None:
        self._model = self._prepared = None

    def _load(self) -> None:
        self._prepared = prepare(self._scorer)
        from pipeline.scorers import heads

        self._model = self._scorer.load(heads.device_here(), self._prepared.reading.readout)

    def _scores(self, chains: Sequence[ChainText]) -> list[StepScores]:
        from pipeline.scorers.heads import read_logits

        prepared = self._prepared
        if prepared is None:
            raise EngineDied("the scoring engine is not running")
        encoded = prepared.encoded(chains, newest_only=self._newest_only)
        batch_tokens = self._scorer.settings.batch_tokens
        read = read_logits(self._model, encoded, batch_tokens=batch_tokens, pad_id=pad_id_of(prepared.tokenizer))
        readout = prepared.reading.readout
        return [
            scores_at(each, [readout.score(row) for row in rows.tolist()], len(chain.steps))
            for chain, each, rows in zip(chains, encoded, read, strict=True)
        ]
