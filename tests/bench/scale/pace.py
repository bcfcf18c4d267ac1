"""How long many passes of a policy take on a device: `pipeline.engines.roofline` summed up in closed form. Pure.

Not covered: policies with experts or windows, whose passes do not grow evenly.
"""

import math
from dataclasses import dataclass

from pipeline.core.hardware import device_named
from pipeline.engines.architectures import architecture_of
from pipeline.engines.roofline import kv_bytes, weight_bytes

MEMORY_SHARE = 0.9
"""What vLLM takes of a device's memory by default."""
ACTIVATION_BYTES = 2e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a policy asks of a device. A decode pass reads `read_bytes` of weights and `kv_bytes` per token of context, and
    multiplies each token with `multiplied` parameters; a token of a prompt costs `prefill_multiplied`. `bandwidth` in bytes/s,
    `flops` in FLOP/s; `kv_tokens`: how many tokens' keys and values the device holds beside the weights."""

    name: str
    read_bytes: float
    kv_bytes: float
    multiplied: float
    prefill_multiplied: float
    bandwidth: float
    flops: float
    kv_tokens: int

    def decode_seconds(self, running: int, context: int, steps: int) -> float:
        """What `steps` steps of `running` sequences take at least. `context`: tokens of all of them before the first; every
        step adds one to each."""
        read = (self.read_bytes + context * self.kv_bytes) / self.bandwidth
        growth = running * self.kv_bytes / self.bandwidth
        compute = 2 * self.multiplied * running / self.flops
        computing = min(steps, max(0, math.ceil((compute - read) / growth))) if growth else 0
        reading = steps - computing
        return compute * computing + reading * (read + growth * (computing + steps - 1) / 2)

    def steps_within(self, running: int, context: int, seconds: float, most: int) -> int:
        """How many steps have begun after `seconds`, at most `most`."""
        low, high = 0, most
        while low < high:
            middle = (low + high) // 2
            if self.decode_seconds(running, context, middle) < seconds:
                low = middle + 1
            else:
                high = middle
        return low

    def prefill_seconds(self, tokens: int) -> float:
        return 2 * self.prefill_multiplied * tokens / self.flops

    def tokens_per_second(self, running: int, mean_context: float) -> float:
        """The bound of decoding at a steady batch."""
        return running / self.decode_seconds(running, round(running * mean_context), 1)


def on_h100(name: str, config: dict[str, object]) -> Pace:
    """A dense policy, by what its `config.json` says, in bfloat16 on an H100 SXM."""
    architecture, device = architecture_of(config), device_named("H100 SXM")
    assert device is not None
    output = architecture.vocab * architecture.hidden
    weights = weight_bytes(architecture)
    kv = kv_bytes(architecture, 1)
    return Pace(
        name=name,
        read_bytes=architecture.body * architecture.bytes_per_weight + output * architecture.bytes_per_embedding,
        kv_bytes=kv,
        multiplied=architecture.body + output,
        prefill_multiplied=architecture.body,
        bandwidth=device.bandwidth,
        flops=device.flops,
        kv_tokens=int((MEMORY_SHARE * device.memory - weights - ACTIVATION_BYTES) / kv),
    )


QWEN_7B_CONFIG: dict[str, object] = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}
QWEN_1_5B_CONFIG: dict[str, object] = {
    "model_type": "qwen2",
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
}
QWEN_7B = on_h100("Qwen2.5-7B", QWEN_7B_CONFIG)
QWEN_1_5B = on_h100("Qwen2.5-1.5B", QWEN_1_5B_CONFIG)
