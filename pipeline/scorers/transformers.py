"""The scoring engine of transformers: a model in this process, in batches of chains of similar length.

It computes whole chains each time and keeps nothing between calls. A search, which scores a chain after every step, is faster
with vLLM's prefix cache.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from pipeline.core.errors import EngineDied, PlaceError
from pipeline.scorers.base import ChainText, StepScores
from pipeline.scorers.encoding import pad_id_of
from pipeline.scorers.model import ModelScorer, Reading, scores_at

_CAPACITY = 2048
"""Chains that are sorted by length and scored together: enough that batches waste little padding."""


class TransformersEngine:
    """See the module. `newest_only`: see `Scorer.engine`."""

    capacity = _CAPACITY

    def __init__(self, scorer: ModelScorer, *, newest_only: bool = False) -> None:
        self._scorer = scorer
        self._newest_only = newest_only
        self._model: Any = None
        self._tokenizer: Any = None
        self._reading: Reading | None = None
        self._max_length = 0
        self._turn = asyncio.Lock()
        self.model = scorer.name

    async def start(self) -> None:
        await asyncio.to_thread(self._load)

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        async with self._turn:
            return await asyncio.to_thread(self._scores, chains)

    async def close(self) -> None:
        self._model = self._reading = None

    def _load(self) -> None:
        try:
            from pipeline.scorers import heads
        except ImportError as error:
            raise PlaceError(
                f"{error}: install the train extra: pip install 'stepvalue[train]', or '.[train]' in a checkout"
            ) from error
        own = self._scorer.settings
        heads.silence_libraries()
        config = heads.load_config(own.model, own.revision)
        self._scorer.check_architecture(config)
        self._tokenizer = heads.load_tokenizer(own.model, own.revision)
        self._reading = self._scorer.reading(self._tokenizer, config)
        context = heads.context_of(config, self._tokenizer)
        self._max_length = min(context, own.max_length or context)
        self._model = self._scorer.load(heads.device_here(), self._reading.readout)

    def _scores(self, chains: Sequence[ChainText]) -> list[StepScores]:
        from pipeline.scorers.heads import read_logits

        reading = self._reading
        if reading is None:
            raise EngineDied("the scoring engine is not running")
        encoded = [reading.encode(chain.problem, chain.steps, self._max_length) for chain in chains]
        if self._newest_only:
            encoded = [chain.newest() for chain in encoded]
        batch_tokens = self._scorer.settings.batch_tokens
        read = read_logits(self._model, encoded, batch_tokens=batch_tokens, pad_id=pad_id_of(self._tokenizer))
        return [
            scores_at(each, [reading.readout.score(row) for row in rows.tolist()], len(chain.steps))
            for chain, each, rows in zip(chains, encoded, read, strict=True)
        ]
