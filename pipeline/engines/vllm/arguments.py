"""What vLLM is asked for, from the settings and, where they leave it open, from the device; and the policy's name. Pure.

vLLM has defaults of a device for `LLM` and for its server, and none of them for an engine that is embedded as here: that one
would run 128 requests at once on any GPU. For GPUs these are its values for `LLM`, since nobody waits for a single answer here.
A KV cache in fewer bits than the model's own type changes the policy, so no device has one by default.
"""

from dataclasses import dataclass

from pipeline.engines.settings import VllmConfig

EMBEDDED = "SmolLM2-135M-Instruct"
RANDOM_WEIGHTS = "dummy"
"""The one `policy.load_format` that decides what a policy says."""
GPU_MEMORY_SHARE = 0.9
"""What is left, 8 GB of 80, is for CUDA's context, graphs and peaks while sampling over large vocabularies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDefaults:
    """`max_num_seqs`: requests that run at once. `max_num_batched_tokens`: of one forward pass, prompts included.

    `block_size`: tokens of a block of the KV cache, which is found again whole or not at all; None: vLLM's own.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int | None = None


_LARGE = DeviceDefaults(max_num_seqs=1024, max_num_batched_tokens=16_384)
_OTHER = DeviceDefaults(max_num_seqs=256, max_num_batched_tokens=8192)

CPU = DeviceDefaults(max_num_seqs=128, max_num_batched_tokens=2048, block_size=32)
"""More requests only make each step slower on a CPU. vLLM's blocks of 128 tokens there hold a whole problem with some steps,
so that little of a prompt is found again; 32 is the least that its kernels are made for."""

_BY_NAME = (
    # Decoding is bound by reading the weights, which 1024 requests share; 80 GB hold the KV cache of as many short chains
    # beside an 8B model. Passes of 16,384 tokens keep such a device busy in prefill.
    (("h100", "h200", "h800", "h20", "gh200", "b200", "b300"), _LARGE),
    # Passes of 16,384 tokens cost an A100 up to a quarter of its throughput (measured in vllm#17885).
    (("a100", "a800"), _OTHER),
    # 48 GB hold the KV cache of some 256 requests of 1,000 tokens beside a 7B model.
    (("l40",), _OTHER),
)


def defaults_for(device: str) -> DeviceDefaults:
    """Defaults of a device by the name its driver tells ("NVIDIA H100 80GB HBM3", "cpu"); an unknown one is taken for small."""
    name = device.lower()
    if name == "cpu":
        return CPU
    return next((found for words, found in _BY_NAME if any(word in name for word in words)), _OTHER)


def engine_arguments(config: VllmConfig, *, model: str, dtype: str, device: str, seed: int) -> dict[str, object]:
    """Keywords of vLLM's `AsyncEngineArgs`. `model`: a folder or name; `device`: as its driver names it, "cpu" for none.

    `seed` has to be another one at every start: with vLLM's own, which is 0, a start that asks for more rollouts in the order
    of an earlier one would draw the same ones again.
    """
    defaults, on_cpu = defaults_for(device), device == "cpu"
    max_num_seqs = config.max_num_seqs or defaults.max_num_seqs
    optional = {
        "max_model_len": config.max_model_len,
        "block_size": defaults.block_size,
        "quantization": config.quantization,
        "speculative_config": _speculative(config),
        "revision": config.revision,
    }
    return {
        "model": model,
        "dtype": dtype,
        "seed": seed,
        "tensor_parallel_size": config.tensor_parallel or 1,
        "max_num_seqs": max_num_seqs,
        # vLLM wants a token for each request at least.
        "max_num_batched_tokens": config.max_num_batched_tokens or max(defaults.max_num_batched_tokens, max_num_seqs),
        "gpu_memory_utilization": config.memory_share or GPU_MEMORY_SHARE,
        "kv_cache_dtype": config.kv_cache_dtype or "auto",
        "enforce_eager": on_cpu if config.enforce_eager is None else config.enforce_eager,
        "load_format": config.load_format,
        "enable_prefix_caching": True,
        "trust_remote_code": False,
        "disable_log_stats": True,
        **{key: value for key, value in optional.items() if value is not None},
    }


def policy_name(name: str, config: VllmConfig, *, dtype: str, on_cpu: bool, stops_at_answer: bool) -> str:
    """Identity of the policy: model, revision, type, kind of device, and what else of the settings shapes what it says."""
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


def _speculative(config: VllmConfig) -> dict[str, object] | None:
    if config.speculative_tokens is None:
        return None
    guesser = {"model": config.speculative_model} if config.speculative_model else {"method": "ngram"}
    return {**guesser, "num_speculative_tokens": config.speculative_tokens}
