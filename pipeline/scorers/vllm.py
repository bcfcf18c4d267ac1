"""The scoring engine of vLLM: a model in processes of its own, with a prefix cache.

Heads with classes and pairs of tokens are read as `engines.vllm.pooling` says. A head with one number is not: vLLM has no class
for it. Chains go to vLLM one by one, so that it fills its passes itself, whatever their lengths.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pipeline.core.errors import EngineDied, UsageError, named
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.engines.settings import HfConfig
from pipeline.engines.vllm.pooling import TokenReader
from pipeline.scorers.base import FAILED, StepScores, unscored
from pipeline.scorers.encoding import EncodedChain
from pipeline.scorers.model import ModelScorer, all_of, scores_at
from pipeline.scorers.prepared import Prepared, prepare
from pipeline.scorers.readouts import Classes, Readout, TokenPair, Value
from pipeline.scorers.served_settings import NAMES
from pipeline.scorers.settings import ModelScorerConfig

_ROUNDS = 4
"""Chains that are scored together, in rounds of those that run at once: enough that their last ones cost little."""


class VllmScoring:
    """See the module. `newest_only`: see `Scorer.engine`."""

    def __init__(self, scorer: ModelScorer, around: Surroundings, *, newest_only: bool = False) -> None:
        self._scorer = scorer
        self._around = around
        self._newest_only = newest_only
        self._prepared: Prepared | None = None
        self._reader: TokenReader | None = None
        self._turn = asyncio.Lock()
        self.model = scorer.name
        self.capacity = 0

    async def start(self) -> None:
        prepared = await asyncio.to_thread(prepare, self._scorer)
        own, around = self._scorer.settings, self._around
        pair = _pair(prepared.reading.readout, own)
        self._reader = reader = TokenReader(
            _settings(own, around, places=min(prepared.context, prepared.max_length + (pair is not None))),
            name=self.model,
            model=_named(own.model),
            pair=pair,
            cpus=around.cpus,
            gpus=around.gpus,
            log_folder=around.log_folder,
        )
        with named(NAMES):
            await reader.start()
        self.capacity = _ROUNDS * reader.capacity
        self._prepared = replace(prepared, max_length=min(prepared.max_length, reader.max_tokens))

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        prepared = self._prepared
        if prepared is None:
            raise EngineDied("the scoring engine is not running")
        async with self._turn:  # A tokenizer serves one thread at a time.
            encoded = await asyncio.to_thread(prepared.encoded, chains, newest_only=self._newest_only)
        pairs = zip(chains, encoded, strict=True)
        return await all_of(self._one(chain, each, prepared.reading.readout) for chain, each in pairs)

    async def close(self) -> None:
        self._prepared = None
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    async def _one(self, chain: ChainText, encoded: EncodedChain, readout: Readout) -> StepScores:
        assert self._reader is not None
        found = await self._reader.read(encoded.ids, encoded.ends)
        if found is None:
            return unscored(len(chain.steps), FAILED)
        scores = [readout.score(row) for row in found.rows]
        return scores_at(encoded, scores, len(chain.steps), computed=found.computed)


def _pair(readout: Readout, own: ModelScorerConfig) -> tuple[int, int] | None:
    match readout:
        case Classes():
            return None
        case TokenPair(good=good, bad=bad):
            return good, bad
        case Value():
            raise UsageError(
                f"scorer.engine=vllm: vLLM does not serve the head of scorer={own.kind}, which has one number per token: use "
                "scorer.engine=transformers, or leave it out"
            )


def _settings(own: ModelScorerConfig, around: Surroundings, *, places: int) -> HfConfig:
    """The settings for vLLM. A model is spread over the GPUs of its worker. `places`: the tokens of the longest request."""
    return HfConfig(
        model=own.model,
        revision=own.revision,
        dtype=own.dtype,
        max_model_len=None if own.max_length is None else places,
        tensor_parallel=own.tensor_parallel or max(1, int(around.gpus)),
        memory_share=own.memory_share,
        kv_cache_gib=own.kv_cache_gib,
        max_num_seqs=own.max_num_seqs,
        max_num_batched_tokens=own.max_num_batched_tokens,
    )


def _named(model: str) -> str:
    """The model as vLLM takes it: an expanded folder, or its name."""
    folder = Path(model).expanduser()
    return str(folder) if folder.is_dir() else model
