"""What vLLM is asked for, from the settings and, where they leave it open, from the device; and the policy's name. Pure."""

from pipeline.engines.defaults import defaults_for
from pipeline.engines.vllm.settings import VllmConfig

EMBEDDED = "SmolLM2-135M-Instruct"
RANDOM_WEIGHTS = "dummy"
"""The one `policy.load_format` that decides what a policy says."""


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
        "gpu_memory_utilization": config.memory_share or defaults.memory_share,
        "kv_cache_dtype": config.kv_cache_dtype or defaults.kv_cache_dtype,
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
