"""What an engine is given where the settings leave it open, by device. Pure.

vLLM has such defaults for `LLM` and for its server, and none of them for an engine that is embedded as here: that one would
run 128 requests at once on any GPU. For GPUs these are its values for `LLM`, since nobody waits for a single answer here.
A KV cache in fewer bits than the model's own type changes the policy, so no device has one by default.
"""

from dataclasses import dataclass

GPU_MEMORY_SHARE = 0.9
"""What is left, 8 GB of 80, is for CUDA's context, graphs and peaks while sampling over large vocabularies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDefaults:
    """`max_num_seqs`: requests that run at once. `max_num_batched_tokens`: of one forward pass, prompts included.

    `memory_share`: of a GPU's memory. `block_size`: tokens of a block of the KV cache, which is found again whole or not at
    all; None: vLLM's own.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    memory_share: float = GPU_MEMORY_SHARE
    kv_cache_dtype: str = "auto"
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
