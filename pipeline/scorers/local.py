"""The scoring engine of a model on this machine, which vLLM or transformers computes: `scorer.engine`.

vLLM keeps a prefix cache, in processes of its own. Chains go to it one by one, so that it fills its passes itself, whatever
their lengths. It reads heads with classes and pairs of tokens as `engines.vllm.pooling` says, and has no class for a head with
one number. transformers computes whole chains each time, in this process, in batches of similar length.

auto takes vLLM where it is installed, serves the architecture and what is read of it, and pays:

- On a GPU always: it fills its passes whatever the lengths of chains, spreads a model over GPUs, and has the prefix cache. No
  figure of ours: there was no GPU to measure on.
- On a CPU where only newest steps are read, for the prefix cache: 8.7 times fewer tokens on chains of 700. Whole chains take
  the same processor time with both, 640 ms with vLLM and 680 with transformers for 189 tokens of a model of 135 million
  parameters, and vLLM starts 16 s later or more. So transformers computes those; `scorer.engine=vllm` is for many.

The figures are those of `python -m tests.bench scoring`, with 100 chains.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipeline.core.errors import EngineDied, PolicyError, UsageError, named
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.engines.settings import HfConfig
from pipeline.engines.vllm.pooling import TokenReader, serves
from pipeline.scorers.base import FAILED, StepScores, unscored
from pipeline.scorers.encoding import EncodedChain, pad_id_of
from pipeline.scorers.model import ModelScorer, Prepared, all_of, scores_at
from pipeline.scorers.readouts import Classes, Readout, TokenPair, Value
from pipeline.scorers.served_settings import NAMES
from pipeline.scorers.settings import ModelEngine, ModelScorerConfig

_ROUNDS = 4
"""Chains that vLLM scores together, in rounds of those that run at once: enough that their last ones cost little."""
_SORTED_TOGETHER = 2048
"""Chains that are sorted by length for transformers and scored together: enough that batches waste little padding."""


class LocalEngine:
    """See the module. `newest_only`: see `Scorer.engine`."""

    def __init__(self, scorer: ModelScorer, around: Surroundings, *, newest_only: bool = False) -> None:
        self._scorer = scorer
        self._around = around
        self._newest_only = newest_only
        self._prepared: Prepared | None = None
        self._reader: TokenReader | None = None
        self._model: Any = None
        self._turn = asyncio.Lock()
        self.model = scorer.name
        self.capacity = 0

    async def start(self) -> None:
        prepared = await asyncio.to_thread(self._scorer.prepared)
        match self._scorer.settings.engine:
            case ModelEngine.vllm:
                await self._start_vllm(prepared)
            case ModelEngine.auto if await asyncio.to_thread(self._vllm_pays, prepared):
                try:
                    await self._start_vllm(prepared)
                except PolicyError as error:
                    raise type(error)(
                        *error.args, "; or let transformers compute it: scorer.engine=transformers"
                    ) from error
            case _:
                await asyncio.to_thread(self._load, prepared)

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        prepared = self._prepared
        if prepared is None:
            raise EngineDied("the scoring engine is not running")
        async with self._turn:  # A tokenizer, and a model in this process, serve one thread at a time.
            if self._reader is None:
                return await asyncio.to_thread(self._in_batches, prepared, chains)
            encoded = await asyncio.to_thread(prepared.encoded, chains, newest_only=self._newest_only)
        readout = prepared.reading.readout
        return await all_of(
            _read(self._reader, readout, chain, each) for chain, each in zip(chains, encoded, strict=True)
        )

    async def close(self) -> None:
        self._prepared = self._model = None
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    def _vllm_pays(self, prepared: Prepared) -> bool:
        if find_spec("vllm") is None or not (self._newest_only or on_gpu()):
            return False
        if isinstance(prepared.reading.readout, Value):
            return False
        return serves(tuple(prepared.config.architectures or ()), cpus=self._around.cpus)

    async def _start_vllm(self, prepared: Prepared) -> None:
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

    def _load(self, prepared: Prepared) -> None:
        from pipeline.scorers.heads import device_here

        self._model = self._scorer.load(device_here(), prepared.reading.readout)
        self.capacity = _SORTED_TOGETHER
        self._prepared = prepared

    def _in_batches(self, prepared: Prepared, chains: Sequence[ChainText]) -> list[StepScores]:
        from pipeline.scorers.heads import read_logits

        encoded = prepared.encoded(chains, newest_only=self._newest_only)
        batch_tokens = self._scorer.settings.batch_tokens
        read = read_logits(self._model, encoded, batch_tokens=batch_tokens, pad_id=pad_id_of(prepared.tokenizer))
        readout = prepared.reading.readout
        return [
            scores_at(each, [readout.score(row) for row in rows.tolist()], len(chain.steps))
            for chain, each, rows in zip(chains, encoded, read, strict=True)
        ]


async def _read(reader: TokenReader, readout: Readout, chain: ChainText, encoded: EncodedChain) -> StepScores:
    found = await reader.read(encoded.ids, encoded.ends)
    if found is None:
        return unscored(len(chain.steps), FAILED)
    scores = [readout.score(row) for row in found.rows]
    return scores_at(encoded, scores, len(chain.steps), computed=found.computed)


def on_gpu() -> bool:
    """Whether there is a GPU that the installed torch can use."""
    from pipeline.scorers.heads import device_here

    return device_here() != "cpu"


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
