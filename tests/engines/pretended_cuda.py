"""`python -m tests.engines.pretended_cuda DEVICE MODEL SETTINGS ...`: what vLLM makes of our arguments on a GPU that is absent.

The CUDA platform of the installed vLLM answers as a GPU with 80 GB of compute capability 9.0. Its kernels are missing, so no
engine starts; arguments, their checks and the defaults that depend on the device are those of a real one. Each of SETTINGS is
a JSON object of settings of `policy`, and gives a line of JSON.
"""

import json
import os
import sys
import types

KERNELS = ("vllm._C", "vllm._C_stable_libtorch", "vllm._moe_C")
"""Modules of compiled kernels, which the CPU build lacks."""
CAPABILITY = (9, 0)
MEMORY = 80 * 2**30
SEED = 3


def main(device: str, model: str, several: list[str]) -> None:
    os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
    for name in KERNELS:
        sys.modules[name] = types.ModuleType(name)
    import vllm.platforms
    from vllm.platforms.cuda import CudaPlatformBase
    from vllm.platforms.interface import DeviceCapability

    class Pretended(CudaPlatformBase):  # type: ignore[misc]  # vllm is untyped here
        @classmethod
        def get_device_capability(cls, device_id: int = 0) -> DeviceCapability:
            return DeviceCapability(*CAPABILITY)

        @classmethod
        def get_device_name(cls, device_id: int = 0) -> str:
            return device

        @classmethod
        def get_device_total_memory(cls, device_id: int = 0) -> int:
            return MEMORY

        @classmethod
        def device_count(cls) -> int:
            return 8

        @classmethod
        def is_fully_connected(cls, physical_device_ids: list[int]) -> bool:
            return True

    vllm.platforms._current_platform = Pretended()
    from vllm.engine.arg_utils import AsyncEngineArgs

    from pipeline.engines.settings import HfConfig
    from pipeline.engines.vllm.arguments import engine_arguments

    for text in several:
        settings = HfConfig(model=model, **json.loads(text))
        arguments = engine_arguments(settings, model=model, dtype="bfloat16", device=device, seed=SEED)
        made = AsyncEngineArgs(**arguments).create_engine_config()
        print(
            json.dumps(
                {
                    "max_num_seqs": made.scheduler_config.max_num_seqs,
                    "max_num_batched_tokens": made.scheduler_config.max_num_batched_tokens,
                    "captured": made.compilation_config.max_cudagraph_capture_size,
                    "async_scheduling": made.scheduler_config.async_scheduling,
                    "prefix_caching": made.cache_config.enable_prefix_caching,
                    "kv_cache_dtype": made.cache_config.cache_dtype,
                    "memory_share": made.cache_config.gpu_memory_utilization,
                    "devices": made.parallel_config.world_size,
                    "backend": str(made.parallel_config.distributed_executor_backend),
                }
            )
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
