"""Completions from vLLM's asynchronous engine in this process.

Requests are sent one by one (n=1) with token-id prompts, and by default without seeds, which keep vLLM from its fastest sampler
on GPUs: the samples are recorded instead. Prefix caching is on, and requests of one prefix are adjacent, so its prefill happens
once. Text is decoded from the whole completion, unless stop texts must be detected while it grows. Requests with the same stop
texts and the same limit share their parameters.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from pipeline.config.label import SamplingConfig
from pipeline.core.errors import EngineDied
from pipeline.core.hardware import Hardware
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import Completion, Finish, Request
from pipeline.data.prompts import Tokenizer
from pipeline.engines.base import attended_tokens, empty_completion, longest
from pipeline.engines.detected_hardware import cpu_hardware, gpu_hardware, part_of
from pipeline.engines.hugging_face import HfTokenizer
from pipeline.engines.settings import VllmConfig
from pipeline.engines.vllm.arguments import policy_name, request_seed
from pipeline.engines.vllm.detokenize import AnswerStop, completion_text, stop_at_answers
from pipeline.engines.vllm.load_errors import check_context
from pipeline.engines.vllm.loaded import BACKLOG, LoadedModel
from pipeline.engines.vllm.meter import SlotMeter, TokenMeter
from pipeline.graders.base import Ending

_FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH}
_FAILED = "error"
"""vLLM's finish reason of a request that failed while the engine keeps working."""


class VllmEngine:
    """One model on the devices that this process sees. `cpus` is the number of cores that a CPU engine may use. `gpus` below 1
    is the share of a GPU that this engine has; the rest is for others.

    `name` is the policy's name, and `model` returns the model that vLLM loads. `ending` detects the final answer, where a
    completion stops. None: completions do not stop there. `log_folder`: where the output of its processes is kept. None: it is
    deleted with the engine.
    """

    def __init__(
        self,
        policy: VllmConfig,
        sampling: SamplingConfig,
        *,
        name: str,
        model: Callable[[], str],
        cpus: int,
        gpus: float = 0.0,
        ending: Ending | None = None,
        log_folder: str | None = None,
    ) -> None:
        self._config = policy
        self._sampling = sampling
        self._gpu_share = min(1.0, gpus or 1.0)
        self._name = name
        self._model = model
        self._ending = ending
        self._loaded = LoadedModel(name=name, cpus=cpus, log_folder=log_folder)
        self._engine: Any = None
        self._tokenizer: HfTokenizer | None = None
        self._slots: asyncio.Semaphore | None = None
        self._params: dict[tuple[tuple[str, ...], int], Any] = {}
        self._slot_meter = SlotMeter()
        self._token_meter = TokenMeter(self._slot_meter)
        self._running = 0
        self._waiting = 0
        self._in_engine: set[str] = set()
        self._outstanding: set[str] = set()
        self._aborted: set[str] = set()
        self._aborting: set[asyncio.Task[None]] = set()
        self._finished = 0
        self._attended = 0
        self.hardware: Hardware | None = None
        self.capacity = 0
        self.max_model_len = 0
        self.policy = ""

    @property
    def tokenizer(self) -> Tokenizer:
        if self._tokenizer is None:
            raise RuntimeError("the engine has not been started")
        return self._tokenizer

    @property
    def load(self) -> Load:
        running = min(self._running, self.capacity)
        return Load(running=running, waiting=self._waiting + self._running - running)

    @property
    def work(self) -> EngineWork:
        unfilled = self._slot_meter.unfilled_seconds
        return replace(
            self._token_meter.work, finished=self._finished, attended=self._attended, unfilled_seconds=unfilled
        )

    async def start(self) -> None:
        config, loaded = self._config, self._loaded
        loaded.load(config, model=self._model(), gpu_share=self._gpu_share, meter=self._token_meter)
        from vllm.v1.engine.detokenizer import IncrementalDetokenizer

        self._engine = loaded.engine
        self._tokenizer = HfTokenizer(self._engine.get_tokenizer())
        if self._ending is not None:
            stop_at_answers(self._engine, IncrementalDetokenizer, AnswerStop(self._ending, self._tokenizer.decode))
        self.max_model_len = int(self._engine.model_config.max_model_len)
        check_context(self._name, context=self.max_model_len, max_tokens=self._sampling.max_tokens)
        self.capacity = int(self._engine.vllm_config.scheduler_config.max_num_seqs)
        self.hardware = self._running_on(None if loaded.on_cpu else loaded.device)
        self._slots = asyncio.Semaphore(max(self.capacity + 1, int(BACKLOG * self.capacity)))
        self._slot_meter.open(self.capacity)
        self.policy = policy_name(
            self._name,
            config,
            dtype=str(self._engine.model_config.dtype).removeprefix("torch."),
            on_cpu=loaded.on_cpu,
            stops_at_answer=self._ending is not None,
        )

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        finished: asyncio.Queue[Completion | EngineDied] = asyncio.Queue()
        tasks = [asyncio.create_task(self._sample(request, keep_tokens, finished)) for request in requests]
        tasks.append(asyncio.create_task(self._report_death(finished)))
        self._outstanding.update(request.request_id for request in requests)
        try:
            outstanding = len(requests)
            while outstanding:
                batch = [await finished.get()]
                while not finished.empty():
                    batch.append(finished.get_nowait())
                outstanding -= len(batch)
                completions = [item for item in batch if isinstance(item, Completion)]
                if completions:
                    yield completions
                for item in batch:
                    if isinstance(item, EngineDied):
                        raise item
        finally:
            for task in tasks:
                task.cancel()
            asked = {request.request_id for request in requests}
            self._outstanding -= asked
            self._aborted -= asked

    def _running_on(self, gpu: str | None) -> Hardware:
        """The hardware of the started engine: GPUs of the name `gpu`, or this machine's CPU (None)."""
        model, stated = self._engine.model_config, self._config.device
        sizes, dtype = model.hf_config.to_dict(), str(model.dtype).removeprefix("torch.")
        kv_dtype = str(self._engine.vllm_config.cache_config.cache_dtype)
        if gpu is None:
            return cpu_hardware(sizes, dtype=dtype, kv_dtype=kv_dtype, threads=self._loaded.cpus, stated=stated)
        found = gpu_hardware(
            sizes,
            dtype=dtype,
            quantization=model.quantization,
            kv_dtype=kv_dtype,
            name=gpu,
            devices=self._config.tensor_parallel or 1,
            stated=stated,
        )
        return part_of(found, self._gpu_share)

    def abort(self, request_ids: Iterable[str]) -> None:
        wanted = self._outstanding.intersection(request_ids) - self._aborted
        self._aborted |= wanted
        if running := wanted & self._in_engine:
            aborting = asyncio.create_task(self._engine.abort(sorted(running)))
            self._aborting.add(aborting)
            aborting.add_done_callback(self._aborting.discard)

    async def close(self) -> None:
        self._engine = None
        self._loaded.close()

    async def _report_death(self, finished: "asyncio.Queue[Completion | EngineDied]") -> None:
        if cause := await self._loaded.died():
            finished.put_nowait(EngineDied(cause))

    async def _sample(
        self, request: Request, keep_tokens: bool, finished: "asyncio.Queue[Completion | EngineDied]"
    ) -> None:
        assert self._slots is not None
        self._count(waiting=1)
        try:
            await self._slots.acquire()
        finally:
            self._count(waiting=-1)
        self._count(running=1)
        self._in_engine.add(request.request_id)
        try:
            finished.put_nowait(await self._complete(request, keep_tokens))
        except EngineDied as death:
            finished.put_nowait(death)
        except Exception as error:  # noqa: BLE001  after any other error the engine's state is unknown, so its owner replaces it
            if self._loaded.is_refusal(error):
                finished.put_nowait(empty_completion(request, Finish.ENGINE_FAILED))
            else:
                finished.put_nowait(EngineDied(self._loaded.death(request.request_id, error)))
        finally:
            self._in_engine.discard(request.request_id)
            self._count(running=-1)
            self._slots.release()

    def _count(self, *, running: int = 0, waiting: int = 0) -> None:
        self._running += running
        self._waiting += waiting
        self._slot_meter.take(self._running, self._waiting)

    async def _complete(self, request: Request, keep_tokens: bool) -> Completion:
        if request.request_id in self._aborted:
            return empty_completion(request, Finish.ABORT)
        prompt = {"prompt_token_ids": list(request.prefix.prompt_ids)}
        stops = bool(self._sampling.stop or request.stop)
        async for output in self._engine.generate(prompt, self._params_of(request), request.request_id):
            if output.finished:
                sample = output.outputs[0]
                if sample.finish_reason == _FAILED:
                    return empty_completion(request, Finish.ENGINE_FAILED)
                if request.request_id in self._aborted:
                    return empty_completion(request, Finish.ABORT)
                if sample.finish_reason not in _FINISHES:
                    # An abort that nobody requested means that the engine is shutting down; the text is cut.
                    raise EngineDied(f"vLLM ended {request.request_id} with finish_reason={sample.finish_reason}")
                n_tokens, prompt_ids, decode = len(sample.token_ids), request.prefix.prompt_ids, self.tokenizer.decode
                self._finished += n_tokens
                self._attended += attended_tokens(len(prompt_ids), n_tokens)
                return Completion(
                    request=request,
                    text=sample.text if stops else completion_text(decode, prompt_ids, sample.token_ids),
                    finish=_FINISHES[sample.finish_reason],
                    n_tokens=n_tokens,
                    token_ids=tuple(sample.token_ids) if keep_tokens else (),
                )
        raise EngineDied("vLLM ended a request without an output")

    def _params_of(self, request: Request) -> Any:
        max_tokens = longest(request, usual=self._sampling.max_tokens, context=self.max_model_len)
        params = self._params.get((request.stop, max_tokens))
        if params is None:
            params = self._params[request.stop, max_tokens] = self._new_params(request.stop, max_tokens)
        number = self._config.request_seed
        if number is None:
            return params
        params = params.clone()
        params.seed = request_seed(number, request.request_id)
        return params

    def _new_params(self, stop: Sequence[str], max_tokens: int) -> Any:
        """How completions are sampled that end at these texts, or those of the settings, or after `max_tokens`."""
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        sampling = self._sampling
        return SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            min_p=sampling.min_p,
            max_tokens=max_tokens,
            stop=[*sampling.stop, *stop],
            detokenize=bool(sampling.stop or stop),
            include_stop_str_in_output=True,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
