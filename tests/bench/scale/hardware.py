"""How fast a device could run a policy: the roofline of decoding and of prefilling. Pure.

A decode step reads all weights and the keys and values of every running sequence, and takes two operations per parameter and
sequence: it takes at least as long as the slower of the two. Prefilling is bound by operations. Attention's own operations
are left out, which are few at contexts of some hundred tokens.
"""

import math
from dataclasses import dataclass

BYTES = 2
"""Of a weight, a key and a value in bfloat16."""

MEMORY_SHARE = 0.9
"""What vLLM takes of a device's memory by default."""
ACTIVATION_BYTES = 2e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a policy asks of a device. `weight_bytes` in all, `kv_bytes` per token of context, `parameters` that take part in a
    forward pass; `bandwidth` in bytes per second, `flops` in dense bfloat16 operations per second; `kv_tokens`: how many
    tokens' keys and values the device holds beside the weights."""

    name: str
    weight_bytes: float
    kv_bytes: float
    parameters: float
    bandwidth: float
    flops: float
    kv_tokens: int

    def decode_seconds(self, running: int, context: int, steps: int) -> float:
        """What so many steps of `running` sequences take at least. `context`: tokens of all of them before the first; every
        step adds one to each."""
        read = (self.weight_bytes + context * self.kv_bytes) / self.bandwidth
        growth = running * self.kv_bytes / self.bandwidth
        compute = 2 * self.parameters * running / self.flops
        computing = min(steps, max(0, math.ceil((compute - read) / growth))) if growth else 0
        reading = steps - computing
        return compute * computing + reading * (read + growth * (computing + steps - 1) / 2)

    def steps_within(self, running: int, context: int, seconds: float, most: int) -> int:
        """How many steps have begun after so many seconds, at most `most`."""
        low, high = 0, most
        while low < high:
            middle = (low + high) // 2
            if self.decode_seconds(running, context, middle) < seconds:
                low = middle + 1
            else:
                high = middle
        return low

    def prefill_seconds(self, tokens: int) -> float:
        return 2 * self.parameters * tokens / self.flops

    def tokens_per_second(self, running: int, mean_context: float) -> float:
        """The bound of decoding at a steady batch."""
        read = (self.weight_bytes + running * mean_context * self.kv_bytes) / self.bandwidth
        return running / max(read, 2 * self.parameters * running / self.flops)


def on_h100(name: str, *, parameters: float, layers: int, kv_heads: int, head_width: int) -> Pace:
    """In bfloat16 on an H100 SXM: 3.35 TB/s, 989 TFLOP/s and 80 GB (NVIDIA's data sheet)."""
    weight_bytes = parameters * BYTES
    kv_bytes = 2 * layers * kv_heads * head_width * BYTES
    return Pace(
        name=name,
        weight_bytes=weight_bytes,
        kv_bytes=kv_bytes,
        parameters=parameters,
        bandwidth=3.35e12,
        flops=989e12,
        kv_tokens=int((MEMORY_SHARE * 80e9 - weight_bytes - ACTIVATION_BYTES) / kv_bytes),
    )


QWEN_7B = on_h100("Qwen2.5-7B", parameters=7.62e9, layers=28, kv_heads=4, head_width=128)
QWEN_1_5B = on_h100("Qwen2.5-1.5B", parameters=1.54e9, layers=28, kv_heads=2, head_width=128)
