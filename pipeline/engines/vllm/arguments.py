"""vLLM's arguments, from the settings or else from defaults of the device, and the policy's name. Pure.

vLLM has defaults per device for `LLM` and for its server, but not for an engine that is embedded as here: that one would run
128 requests at once on any GPU. The defaults for GPUs here are those of `LLM`, because latency of one answer does not matter.
A KV cache with fewer bits than the model's own type changes the policy, so it is never a default.
"""

import zlib
from dataclasses import dataclass

from pipeline.engines.settings import VllmConfig

EMBEDDED = "SmolLM2-135M-Instruct"
GIB = 2**30
RANDOM_WEIGHTS = "dummy"
"""The only `policy.load_format` that changes the policy's output."""
GPU_MEMORY_SHARE = 0.9
"""The rest, 8 GB of 80, is for CUDA's context, CUDA graphs and memory peaks of sampling over large vocabularies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDefaults:
    """`max_num_seqs`: requests that run at once. `max_num_batched_tokens`: tokens of one forward pass, prompts included.

    `block_size`: tokens per block of the KV cache; the prefix cache reuses only whole blocks. None: vLLM's default.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int | None = None


_LARGE = DeviceDefaults(max_num_seqs=1024, max_num_batched_tokens=16_384)
_OTHER = DeviceDefaults(max_num_seqs=256, max_num_batched_tokens=8192)

CPU = DeviceDefaults(max_num_seqs=128, max_num_batched_tokens=2048, block_size=32)
"""On a CPU, more requests only slow each step down. vLLM's default block of 128 tokens would hold a whole problem with some
steps, so the cache would reuse little of a prompt. 32 is the smallest block size that its kernels support."""

_BY_NAME = (
    # Decoding is bound by reading the weights, which 1024 requests share. 80 GB hold an 8B model and the KV cache of 1024
    # short chains. Passes of 16,384 tokens keep such a device busy in prefill.
    (("h100", "h200", "h800", "h20", "gh200", "b200", "b300"), _LARGE),
    # Passes of 16,384 tokens cost an A100 up to a quarter of its throughput (measured in vllm#17885).
    (("a100", "a800"), _OTHER),
    # 48 GB hold a 7B model and the KV cache of about 256 requests of 1,000 tokens.
    (("l40",), _OTHER),
)


def defaults_for(device: str) -> DeviceDefaults:
    """Defaults of a device by its driver's name for it ("NVIDIA H100 80GB HBM3", "cpu"). Unknown devices count as small."""
    name = device.lower()
    if name == "cpu":
        return CPU
    return next((found for words, found in _BY_NAME if any(word in name for word in words)), _OTHER)


def engine_arguments(
    config: VllmConfig,
    *,
    model: str,
    dtype: str,
    device: str,
    seed: int,
    gpu_share: float = 1.0,
    reads_classes: bool = False,
) -> dict[str, object]:
    """Keyword arguments of vLLM's `AsyncEngineArgs`. `model`: a folder or name. `device`: the driver's name, or "cpu".
    `gpu_share`: the share of a GPU that the engine has. `reads_classes`: the engine reads a head's classes instead of writing.

    `seed` must differ at every start. With vLLM's default 0, a later start that sends requests in the same order would draw
    the same rollouts again.
    """
    defaults, on_cpu = defaults_for(device), device == "cpu"
    max_num_seqs = config.max_num_seqs or defaults.max_num_seqs
    optional = {
        "runner": "pooling" if reads_classes else None,
        "max_model_len": config.max_model_len,
        "block_size": defaults.block_size,
        "quantization": config.quantization,
        "speculative_config": _speculative(config),
        "revision": config.revision,
        "max_cudagraph_capture_size": config.max_cudagraph_capture_size,
        # vLLM's environment variable for this takes whole GiB only.
        "kv_cache_memory_bytes": int(config.kv_cache_gib * GIB) if on_cpu else None,
    }
    return {
        "model": model,
        "dtype": dtype,
        "seed": seed,
        "tensor_parallel_size": config.tensor_parallel or 1,
        "max_num_seqs": max_num_seqs,
        # vLLM requires at least one token per request.
        "max_num_batched_tokens": config.max_num_batched_tokens or max(defaults.max_num_batched_tokens, max_num_seqs),
        "gpu_memory_utilization": config.memory_share or GPU_MEMORY_SHARE * gpu_share,
        "kv_cache_dtype": config.kv_cache_dtype or "auto",
        "enforce_eager": on_cpu if config.enforce_eager is None else config.enforce_eager,
        "load_format": config.load_format,
        # vLLM knows which heads it serves with a prefix cache.
        "enable_prefix_caching": None if reads_classes else True,
        "trust_remote_code": False,
        "disable_log_stats": True,
        **{key: value for key, value in optional.items() if value is not None},
    }


def policy_name(name: str, config: VllmConfig, *, dtype: str, on_cpu: bool, stops_at_answer: bool) -> str:
    """Identity of the policy: model, revision, dtype, kind of device, and the other settings that change its output."""
    parts = [f"{name}@{config.revision or 'main'}", dtype, "cpu" if on_cpu else "gpu"]
    if config.load_format == RANDOM_WEIGHTS:
        parts.append("random_weights")
    if config.quantization:
        parts.append(f"quantization={config.quantization}")
    if config.kv_cache_dtype:
        parts.append(f"kv_cache={config.kv_cache_dtype}")
    if config.speculative_tokens:
        parts.append(f"speculative={config.speculative_model or 'ngram'}-{config.speculative_tokens}")
    if stops_at_answer:
        parts.append("stop_at_answer")
    return ":".join(parts)


def request_seed(number: int, request_id: str) -> int:
    """The seed of a request: 32 bits, which no two requests of a run are likely to share."""
    return zlib.crc32(request_id.encode(), zlib.crc32(str(number).encode()))


def _speculative(config: VllmConfig) -> dict[str, object] | None:
    if config.speculative_tokens is None:
        return None
    guesser = {"model": config.speculative_model} if config.speculative_model else {"method": "ngram"}
    return {**guesser, "num_speculative_tokens": config.speculative_tokens}
