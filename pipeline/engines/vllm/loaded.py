"""A model that vLLM has loaded in this process: its asynchronous engine, the guard of its processes, their log, why they died.

What samples completions (`engine`) and what reads numbers at tokens (`pooling`) share it. No other module starts vLLM.
"""

import asyncio
import contextlib
import os
import re
import secrets
import socket
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipeline.core.errors import PlaceError
from pipeline.engines.detected_hardware import has_cuda_compiler
from pipeline.engines.settings import VllmConfig
from pipeline.engines.vllm.arguments import engine_arguments
from pipeline.engines.vllm.death import death_cause
from pipeline.engines.vllm.engine_log import EngineLog
from pipeline.engines.vllm.guard import EngineGuard
from pipeline.engines.vllm.load_errors import load_error
from pipeline.engines.vllm.meter import TokenMeter, leave_prometheus_out

BACKLOG = 1.2
"""Requests given to vLLM, relative to the number that it can run: a finished request is replaced at once."""
SEED_BITS = 31
DEATH_SECONDS = 2.0
"""How often to look whether the engine has died, and how long its requests then have to say so themselves."""


class LoadedModel:
    """`name`: of the model, for messages. `cpus`: the cores that a CPU engine may use. `log_folder`: where the output of its
    processes is kept. None: it is deleted with the engine.

    After `load`, `engine` is vLLM's `AsyncLLM`, `device` the driver's name of the device, or "cpu".
    """

    def __init__(self, *, name: str, cpus: int, log_folder: str | None) -> None:
        self.cpus = cpus
        self.engine: Any = None
        self.device = ""
        self._name = name
        self._log_folder = log_folder
        self._guard: EngineGuard | None = None
        self._log: EngineLog | None = None
        self._forget_environment: Callable[[], None] = lambda: None
        self._refusals: tuple[type[Exception], ...] = ()

    @property
    def on_cpu(self) -> bool:
        return self.device == "cpu"

    def load(
        self,
        config: VllmConfig,
        *,
        model: str,
        gpu_share: float = 1.0,
        meter: TokenMeter | None = None,
        on_cpu: str | None = None,
        reads_classes: bool = False,
    ) -> None:
        """Load `model`, a folder or a name. `meter` counts its work. `on_cpu`: the number format there of dtype=auto. None: the
        fastest. `reads_classes`: see `engine_arguments`. Raises PlaceError when this machine is to blame, and PolicyError when
        the model or a setting is."""
        set_environment(self.cpus)
        try:
            from vllm import envs, exceptions
            from vllm.config import PoolerConfig
            from vllm.engine.arg_utils import AsyncEngineArgs
            from vllm.platforms import current_platform
            from vllm.v1.engine.async_llm import AsyncLLM
        except ImportError as error:
            raise PlaceError(
                f"vLLM is not installed here: install the cpu or gpu extra as the README says ({error})"
            ) from error

        self.device = _device_name(current_platform)
        dtype = (on_cpu or cpu_dtype()) if self.on_cpu and config.dtype == "auto" else config.dtype
        arguments = engine_arguments(
            config,
            model=model,
            dtype=dtype,
            device=self.device,
            seed=secrets.randbits(SEED_BITS),
            gpu_share=gpu_share,
            reads_classes=reads_classes,
        )
        if reads_classes:
            # Some classes have other defaults, with which vLLM has no prefix cache and takes a chain in one pass only.
            arguments["pooler_config"] = PoolerConfig(seq_pooling_type="LAST", tok_pooling_type="ALL")
        self._guard = EngineGuard()
        self._log = log = EngineLog(None if self._log_folder is None else Path(self._log_folder))
        meters = None if meter is None else [meter]
        with log.capture():
            try:
                self.engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments), stat_loggers=meters)
            except Exception as error:  # vLLM raises many types here; all mean "cannot load"
                raise load_error(self._name, str(error), log.text, _kept(log)) from error
            log.take_logger()
        log.mark()
        # Half of the front end's time per token is spent on looking up environment variables.
        envs.enable_envs_cache()
        self._forget_environment = envs.disable_envs_cache
        leave_prometheus_out(self.engine)
        self._refusals = (ValueError, getattr(exceptions, "VLLMClientError", ValueError))

    def is_refusal(self, error: Exception) -> bool:
        """Whether vLLM rejected one request and continues with the others. It wraps some of its errors."""
        refused = isinstance(error, self._refusals) or isinstance(error.__cause__, self._refusals)
        return refused and not self.engine.errored

    def death(self, request_id: str, error: Exception) -> str:
        """Why the engine stopped, and where its output stands. `error`: what a request ended with."""
        if not self.engine.errored:
            return f"vLLM failed on {request_id}: {type(error).__name__}: {error}"
        return self._cause()

    async def died(self) -> str:
        """Wait until the engine has died, and return why, where its requests had time to say so themselves. vLLM leaves those
        waiting that are its first when it dies. Empty if it is closed."""
        while self.engine is not None and not self.engine.errored:
            await asyncio.sleep(DEATH_SECONDS)
        await asyncio.sleep(DEATH_SECONDS)
        return "" if self.engine is None else self._cause()

    def _cause(self) -> str:
        assert self._log is not None
        return f"vLLM died: {death_cause(self._log.text, _ended(self.engine))}{_kept(self._log)}"

    def close(self) -> None:
        """Free the device. Safe to call twice and after a failed `load`."""
        engine, self.engine = self.engine, None
        if engine is not None:
            engine.shutdown()
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.release()
        if self._log is not None:
            self._log.close()
        self._forget_environment()


def _kept(log: EngineLog) -> str:
    """A clause that says where the output of an engine's processes is. Empty if it goes with the engine."""
    return f"; its output is in {log.named()} on {socket.gethostname()}" if log.is_kept else ""


def _ended(engine: Any) -> Mapping[str, int]:
    """The exit codes of the engine's processes that have ended, by name. Empty where vLLM does not tell."""
    manager = getattr(getattr(getattr(engine, "engine_core", None), "resources", None), "engine_manager", None)
    finished = getattr(manager, "finished_procs", None)
    return dict(finished()) if callable(finished) else {}


def _device_name(platform: Any) -> str:
    """The device's name from its driver, without initializing the device in this process. Empty where it is unknown."""
    try:
        return "cpu" if platform.is_cpu() else str(platform.get_device_name())
    except Exception:  # noqa: BLE001  each platform raises its own errors here, and vLLM works without a name too
        return ""


def set_environment(cpus: int) -> None:
    """Set the variables that vLLM reads when it is imported, unless the user has set them."""
    usable = sorted(os.sched_getaffinity(0))[:cpus]
    defaults = {
        # All cores: the default of vLLM keeps one free, which halves the speed of a two-core machine.
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, usable)) if len(usable) == os.cpu_count() else "nobind",
        "OMP_NUM_THREADS": str(cpus),
        "VLLM_LOGGING_LEVEL": "INFO",
        "VLLM_LOGGING_COLOR": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    if find_spec("flashinfer_jit_cache") is None and not has_cuda_compiler():
        # FlashInfer's sampler would be compiled at the first sample.
        defaults["VLLM_USE_FLASHINFER_SAMPLER"] = "0"
    for name, value in defaults.items():
        if name == "OMP_NUM_THREADS":
            os.environ[name] = value  # Ray has set it already, to the actor's share of cores
        else:
            os.environ.setdefault(name, value)


def cpu_dtype() -> str:
    """bfloat16 where the CPU supports it, else float32: emulated bfloat16 has a third of the speed of float32."""
    with contextlib.suppress(OSError):
        flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if flags and {"avx512_bf16", "amx_bf16"} & set(flags.group(1).split()):
            return "bfloat16"
    return "float32"
