"""The highest speed of a model on given devices, and the smallest number of devices that hold it. Pure.

The bound on speed follows from the memory bandwidth and the arithmetic of one forward pass.

A pass that generates one token for each of B sequences reads every weight that it needs and the KV cache of every sequence, c
tokens long on average, and multiplies B tokens with the weights. It takes at least

    max( (W + B c kv) / bandwidth , 2 P B / FLOP/s )

where W is the bytes of the weights read, kv the bytes of a token in the KV cache, and P the number of parameters that a token
is multiplied with (the roofline of Williams, Waterman and Patterson, CACM 52(4), 2009; 2 FLOP per parameter and token as in
Kaplan et al., arXiv 2001.08361, section 2.1). The input embeddings are looked up, not read completely, so they count in neither
W nor P. Prompts cost 2 P FLOP per token without the output layer. A model on several devices has the sum of their bandwidth
and FLOP/s. The bound leaves out communication, sampling and the host, so no engine reaches it.

Without experts and windows both times are linear in B and in B c, and their maximum is convex. At the means of a run, with c
weighted by tokens, the bound is therefore never below the speed that its individual passes allow together.

A model is spread over the smallest number of devices that hold it with enough KV cache: copies of a model run independently,
whereas the parts of one model exchange the output of every layer.
"""

import math
from dataclasses import dataclass

from pipeline.core.hardware import Architecture, Device, Hardware, Throughput
from pipeline.core.progress import EngineWork

WORKSPACE_BYTES = 2e9
"""Bytes that vLLM needs on every device in addition to weights and KV cache, for activations and CUDA graphs."""
FREE_SHARE = 0.25
"""The share of all sequences that the KV cache must hold at once. With fewer, an engine spends its time reading weights."""
SEQUENCES = 256
"""Sequences that run at once where no setting gives the number. Large devices run more if their memory holds them, but that is
no reason to spread a model that fits on one device."""
SEQUENCE_TOKENS = 1024
"""Assumed average length of a sequence in tokens: a problem, a chain and its completion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The work of all engines of a run during labelling, summed. All engines run on the same kind of hardware.

    `wall_seconds` is the duration of the run. `engine_seconds` is the time from when an engine is ready until it or the run
    ends, summed over engines. `tail_seconds` is the part of `work.unfilled_seconds` after the last input was given out; None
    where it was not measured. `distinct_prompt` counts the tokens of all prompts, with shared beginnings counted once; 0: not
    counted. `grading_seconds` is the time of grading, summed over processes.
    """

    hardware: Hardware
    work: EngineWork
    wall_seconds: float
    engine_seconds: float
    tail_seconds: float | None = None
    distinct_prompt: int = 0
    grading_seconds: float = 0.0


def common(one: Hardware | None, other: Hardware | None) -> Hardware | None:
    """The common hardware of two engines (None: no engine). Measurements of equal CPUs differ slightly: the first counts."""
    if one is None or other is None or _kind(one) == _kind(other):
        return one or other
    return Hardware(unknown="the engines ran on different devices, which have no common bound")


def _kind(hardware: Hardware) -> tuple[object, ...]:
    return hardware.architecture, hardware.device and hardware.device.name, hardware.devices, hardware.unknown


def parameters(architecture: Architecture) -> int:
    """The number of parameters that memory must hold."""
    tables = 1 if architecture.tied else 2
    return architecture.body + architecture.experts + tables * architecture.vocab * architecture.hidden


def weight_bytes(architecture: Architecture) -> float:
    """Bytes of all weights."""
    layers = architecture.body + architecture.experts
    return (
        layers * architecture.bytes_per_weight + (parameters(architecture) - layers) * architecture.bytes_per_embedding
    )


def kv_bytes(architecture: Architecture, tokens: float) -> float:
    """Bytes of the KV cache of a sequence of `tokens` tokens, which is also what one pass reads of it."""
    windowed = architecture.windowed_layers
    entries = (architecture.layers - windowed) * tokens + windowed * min(tokens, architecture.window)
    return 2 * entries * architecture.kv_heads * architecture.head_dim * architecture.bytes_per_kv


def decode_seconds(
    architecture: Architecture, device: Device, *, batch: float, context: float, devices: int = 1
) -> float:
    """The shortest time in seconds of one pass that generates a token for each of `batch` sequences of mean length `context`.

    The pass reads the expected share of experts that `batch` tokens choose independently.
    """
    output = architecture.vocab * architecture.hidden
    chosen = 1.0 - math.pow(1.0 - architecture.expert_share, batch)
    weights = (
        architecture.body + architecture.experts * chosen
    ) * architecture.bytes_per_weight + output * architecture.bytes_per_embedding
    reading = (weights + batch * kv_bytes(architecture, context)) / device.bandwidth
    multiplied = architecture.body + architecture.experts * architecture.expert_share + output
    return max(reading, 2 * multiplied * batch / device.flops) / devices


def decode_bound(
    architecture: Architecture, device: Device, *, batch: float, context: float, devices: int = 1
) -> float:
    """The highest number of tokens/s; see `decode_seconds`."""
    return batch / decode_seconds(architecture, device, batch=batch, context=context, devices=devices)


def prefill_seconds(architecture: Architecture, device: Device, *, tokens: float, devices: int = 1) -> float:
    """The shortest time in seconds for `tokens` prompt tokens, without what they look back on."""
    multiplied = architecture.body + architecture.experts * architecture.expert_share
    return 2 * multiplied * tokens / device.flops / devices


def throughput(effort: Effort) -> Throughput | None:
    """The speed of the engines and its bound. None where they generated nothing."""
    work, hardware = effort.work, effort.hardware
    if not (work.generated and effort.wall_seconds > 0 and effort.engine_seconds > 0):
        return None
    batch = work.generated / work.steps if work.steps else None
    context = work.attended / (work.finished or work.generated)
    share = prefill_share = None
    if hardware.architecture is not None and hardware.device is not None and batch is not None:
        pass_seconds = decode_seconds(
            hardware.architecture, hardware.device, batch=batch, context=context, devices=hardware.devices
        )
        prompt_seconds = prefill_seconds(
            hardware.architecture, hardware.device, tokens=work.prefilled, devices=hardware.devices
        )
        share = work.steps * pass_seconds / effort.engine_seconds
        prefill_share = prompt_seconds / effort.engine_seconds
    return Throughput(
        hardware=hardware,
        engines=effort.engine_seconds / effort.wall_seconds,
        tokens_per_second=work.generated / effort.wall_seconds,
        batch=batch,
        context=context,
        idle=work.unfilled_seconds / effort.engine_seconds,
        tail=None if effort.tail_seconds is None else effort.tail_seconds / effort.engine_seconds,
        grading=effort.grading_seconds / effort.engine_seconds,
        prefill_ratio=work.prefilled / effort.distinct_prompt if effort.distinct_prompt and work.prefilled else None,
        share=share,
        prefill_share=prefill_share,
    )


def least_devices(
    architecture: Architecture,
    *,
    memory: float,
    share: float,
    at_most: int,
    sequences: int | None = None,
    context: int | None = None,
) -> int | None:
    """The smallest power of two of devices that holds the model and its KV cache. None where no number up to `at_most` does.

    Each device has `memory` bytes, of which the engine may use `share`. The KV cache must hold a quarter of the `sequences`,
    and one sequence that fills the `context`. Heads are not split. With more devices than KV heads, several hold the same head.
    """
    longest = context or architecture.context
    typical = FREE_SHARE * (sequences or SEQUENCES) * kv_bytes(architecture, min(SEQUENCE_TOKENS, longest))
    cache = max(typical, kv_bytes(architecture, longest))
    devices = 1
    while devices <= at_most:
        if divides(architecture, devices):
            per_device = weight_bytes(architecture) / devices + cache / min(devices, architecture.kv_heads)
            if per_device + WORKSPACE_BYTES <= share * memory:
                return devices
        devices *= 2
    return None


def divides(architecture: Architecture, devices: int) -> bool:
    """Whether vLLM can distribute the model's heads over `devices` devices."""
    few, many = sorted((architecture.kv_heads, devices))
    return architecture.heads % devices == 0 and many % few == 0
