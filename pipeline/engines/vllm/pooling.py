"""Numbers that a model computes at chosen tokens of a text, by vLLM in this process: token ids in, numbers out.

A head with classes runs as a pooling model. `token_classify` gives its logits at all tokens in one pass and never takes tokens
from the prefix cache, whose results are gone. Where the last token alone is asked for, `classify` gives its logits and takes
the tokens before it from the cache. vLLM's class for Qwen's process reward models has no `classify`: there `token_classify` is
allowed to read the cache, and the last row is the last token's.

A causal language model answers with one token. `logprob_token_ids` gives the log-probabilities of two tokens; they are those
of the softmax over the whole vocabulary, so their difference is that of the logits. A request is read at its end only: each
token that is asked for costs a request, and requests of one text are adjacent, so that all but the first find what is common
in the cache. `prompt_logprob_token_ids` would read all in one request, but vLLM 0.32 has it on its newer runner only, which
runs on no CPU.

No activation is applied: what is read from the numbers is the caller's.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from pipeline.core.errors import EngineDied
from pipeline.engines.settings import VllmConfig
from pipeline.engines.vllm.loaded import BACKLOG, LoadedModel, set_environment

_FAILED = ("error", "abort")
"""vLLM's finish reasons of a request without an answer: it failed while the engine goes on, or the engine ends."""
_ON_CPU = "float32"
"""bfloat16 has less than three decimal digits."""
_HEAD = "ForTokenClassification"
_CAUSAL = ("ForCausalLM", "LMHeadModel")
"""Endings of the models on which vLLM puts a head. What it has with a head of its own are encoders, which read both ways."""
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """`rows`: the numbers at each token that was asked for, in their order: the logits of a head's classes, or the
    log-probabilities of two tokens. `computed`: tokens that the model computed for them, the others were in its cache; where a
    text takes several requests, a token that is not in the cache counts each time."""

    rows: Sequence[Sequence[float]]
    computed: int


def serves(architectures: Sequence[str], *, cpus: int) -> bool:
    """Whether vLLM has one of these architectures, names in a config.json, as a causal model: itself, or to put a head with
    classes on. Loads vLLM; False where that fails. `cpus`: as for `TokenReader`."""
    set_environment(cpus)
    try:
        from vllm.model_executor.models import registry as models
    except ImportError:
        return False
    registry = models.ModelRegistry
    known = registry.get_supported_archs()
    for name in architectures:
        trunk = name.removesuffix(_HEAD)
        if name in known and trunk == name:
            return True
        if trunk != name and any(trunk + ending in known for ending in _CAUSAL):
            return True
    return False


class TokenReader:
    """One model on the devices that this process sees; see `VllmEngine` for `cpus`, `gpus` and `log_folder`.

    `name`: of the model, for messages. `pair`: the two tokens whose log-probabilities are read. None: the model has a head with
    classes, and its logits are read.
    """

    def __init__(
        self,
        settings: VllmConfig,
        *,
        name: str,
        model: str,
        pair: tuple[int, int] | None,
        cpus: int,
        gpus: float = 0.0,
        log_folder: str | None = None,
    ) -> None:
        self._settings = settings
        self._model = model
        self._pair = pair
        self._gpu_share = min(1.0, gpus or 1.0)
        self._loaded = LoadedModel(name=name, cpus=cpus, log_folder=log_folder)
        self._engine: Any = None
        self._slots: asyncio.Semaphore | None = None
        self._numbers = count()
        self._every: Any = None
        self._last: Any = None
        self._input: Any = None
        self.capacity = 0
        self.max_tokens = 0

    async def start(self) -> None:
        """Load the model. Then `capacity` is the number of requests that run at once, and `max_tokens` the length of the
        longest text. Raises PlaceError and PolicyError as `Engine.start` does."""
        loaded = self._loaded
        loaded.load(
            self._settings,
            model=self._model,
            gpu_share=self._gpu_share,
            on_cpu=_ON_CPU,
            reads_classes=self._pair is None,
        )
        from vllm.inputs.engine import tokens_input

        self._engine, self._input = loaded.engine, tokens_input
        self.capacity = int(self._engine.vllm_config.scheduler_config.max_num_seqs)
        context = int(self._engine.model_config.max_model_len)
        if self._pair is None:
            await self._read_classes()
            self.max_tokens = context
        else:
            self._read_pair(self._pair)
            self.max_tokens = context - 1  # The answer's token takes a place too.
        self._slots = asyncio.Semaphore(max(self.capacity + 1, int(BACKLOG * self.capacity)))

    async def read(self, ids: Sequence[int], at: Sequence[int]) -> Numbers | None:
        """The numbers at the tokens of the indices `at`, which ascend. None where vLLM refuses the text but keeps working.
        Raises EngineDied."""
        if not at:
            return Numbers(rows=(), computed=0)
        return await (self._at_classes(ids, at) if self._pair is None else self._at_pair(ids, at))

    async def close(self) -> None:
        """Free the device. Safe to call twice and after a failed start."""
        self._engine = None
        self._loaded.close()

    async def _read_classes(self) -> None:
        from vllm.pooling_params import PoolingParams

        tasks = await self._engine.get_supported_tasks()
        self._every = PoolingParams(task="token_classify", use_activation=False)
        self._last = (
            PoolingParams(task="classify", use_activation=False)
            if "classify" in tasks
            else PoolingParams(task="token_classify", use_activation=False, skip_reading_prefix_cache=False)
        )

    def _read_pair(self, pair: tuple[int, int]) -> None:
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        self._every = SamplingParams(
            max_tokens=1,
            temperature=0.0,
            logprob_token_ids=list(pair),
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    async def _at_classes(self, ids: Sequence[int], at: Sequence[int]) -> Numbers | None:
        only_last = len(at) == 1 and at[0] == len(ids) - 1
        request_id, params = self._request_id(), self._last if only_last else self._every

        async def read() -> Numbers:
            async for pooled in self._engine.encode(self._input(list(ids)), params, request_id):
                drawn = pooled.outputs
                data = drawn.data
                if pooled.finished and data.numel():
                    rows = data.reshape(-1, data.shape[-1])[-1:] if only_last else data[list(at)]
                    return Numbers(rows=rows.tolist(), computed=len(ids) - pooled.num_cached_tokens)
            raise EngineDied(f"vLLM ended {request_id} without an output")

        return await self._answered(request_id, read())

    async def _at_pair(self, ids: Sequence[int], at: Sequence[int]) -> Numbers | None:
        # Tasks start in their order, so the requests of a text follow each other.
        asked = [asyncio.create_task(self._one_pair(ids[: end + 1])) for end in at]
        try:
            found = await asyncio.gather(*asked)
        finally:
            for task in asked:
                task.cancel()
        answers = [each for each in found if each is not None]
        if len(answers) < len(found):
            return None
        return Numbers(
            rows=[row for each in answers for row in each.rows], computed=sum(each.computed for each in answers)
        )

    async def _one_pair(self, ids: Sequence[int]) -> Numbers | None:
        assert self._pair is not None
        pair, request_id = self._pair, self._request_id()

        async def written() -> Numbers | None:
            async for output in self._engine.generate(self._input(list(ids)), self._every, request_id):
                if output.finished:
                    sample = output.outputs[0]
                    if sample.finish_reason == _FAILED[0]:
                        return None
                    if sample.finish_reason in _FAILED or not sample.logprobs:
                        raise EngineDied(f"vLLM ended {request_id} with finish_reason={sample.finish_reason}")
                    known = sample.logprobs[0]
                    return Numbers(
                        rows=[[float(known[token].logprob) for token in pair]],
                        computed=len(ids) - (output.num_cached_tokens or 0),
                    )
            raise EngineDied(f"vLLM ended {request_id} without an output")

        return await self._answered(request_id, written())

    async def _answered(self, request_id: str, answer: Coroutine[Any, Any, _Found]) -> _Found | None:
        """The answer, or None where vLLM refuses the request. Raises EngineDied."""
        if self._slots is None or self._engine is None:
            answer.close()
            raise EngineDied("the scoring engine is not running")
        async with self._slots:
            try:
                return await answer
            except EngineDied:
                raise
            except Exception as error:  # After any other error the engine's state is unknown, so its owner replaces it.
                if self._loaded.is_refusal(error):
                    return None
                raise EngineDied(self._loaded.death(request_id, error)) from error

    def _request_id(self) -> str:
        return f"score-{next(self._numbers)}"
