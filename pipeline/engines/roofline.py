"""What devices could do with a model: how fast an engine could be at best, and on how few of them the model fits. Pure.

Speed is what memory and arithmetic allow for one forward pass.

A pass that makes one token for each of B sequences reads every weight that it needs and the KV cache of every sequence, c
tokens long on average, and multiplies B tokens with the weights. It lasts at least

    max( (W + B c kv) / bandwidth , 2 P B / FLOP/s )

with W the bytes of the weights read, kv the bytes of a token in the KV cache, and P the parameters that a token is multiplied
with (the roofline of Williams, Waterman and Patterson, CACM 52(4), 2009; 2 FLOP per parameter and token as in Kaplan et al.,
arXiv 2001.08361, section 2.1). The table of input embeddings is looked up and not read through, so that it counts in neither.
Prompts cost 2 P FLOP per token, less the output layer, and 4 x layers x heads x head_dim per token and token before it. A model
on several devices has the sum of their bandwidth and arithmetic. Communication, sampling and the host are not in it: no engine
reaches the bound.

Without experts and windows both times are linear in B and in B c, and their maximum is convex: at the means of a run, c
weighed by tokens, the bound is never below what its own passes allowed together.

A model is spread over as few devices as hold it and leave it room to work: copies of a model work without each other, the parts
of one exchange what every layer made.
"""

import math
from dataclasses import dataclass

from pipeline.core.hardware import Architecture, Device, Hardware, Throughput
from pipeline.core.progress import EngineWork

WORKSPACE_BYTES = 2e9
"""What vLLM needs on every device beside weights and KV cache, for activations and CUDA graphs."""
FREE_SHARE = 0.25
"""The share of all sequences that the KV cache has to hold at once: with fewer an engine spends its time reading weights."""
SEQUENCES = 256
"""Taken where no setting says how many run at once. Large devices run more where their memory holds them, which is no reason to
spread a model that fits on one."""
SEQUENCE_TOKENS = 1024
"""What a sequence is taken to hold on average: a problem, a chain and its completion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What the engines of a run did while it labelled, added up; all of them on the same kind of hardware.

    `wall_seconds` are those of the run, `engine_seconds` those of each engine from when it was ready until the run's end or its
    own, added up. `tail_seconds` is the part of `work.unfilled_seconds` after the last input was handed out, None where nobody
    looked then. `distinct_prompt` counts the tokens of all prompts, what several begin with once; 0: nobody counted.
    `grading_seconds`: what verdicts took in all processes together.
    """

    hardware: Hardware
    work: EngineWork
    wall_seconds: float
    engine_seconds: float
    tail_seconds: float | None = None
    distinct_prompt: int = 0
    grading_seconds: float = 0.0


def common(one: Hardware | None, other: Hardware | None) -> Hardware | None:
    """The hardware of two engines; None stands for no engine. Measurements of equal processors differ a little: one counts."""
    if one is None or other is None or _kind(one) == _kind(other):
        return one or other
    return Hardware(unknown="engines ran on different devices, for which there is no common bound")


def _kind(hardware: Hardware) -> tuple[object, ...]:
    return hardware.architecture, hardware.device and hardware.device.name, hardware.devices, hardware.unknown


def parameters(architecture: Architecture) -> int:
    """All that have to be held."""
    tables = 1 if architecture.tied else 2
    return architecture.body + architecture.experts + tables * architecture.vocab * architecture.hidden


def weight_bytes(architecture: Architecture) -> float:
    """Memory of all weights."""
    layers = architecture.body + architecture.experts
    return (
        layers * architecture.bytes_per_weight + (parameters(architecture) - layers) * architecture.bytes_per_embedding
    )


def kv_bytes(architecture: Architecture, tokens: float) -> float:
    """What the KV cache of a sequence of so many tokens takes, and a pass reads of it."""
    windowed = architecture.windowed_layers
    entries = (architecture.layers - windowed) * tokens + windowed * min(tokens, architecture.window)
    return 2 * entries * architecture.kv_heads * architecture.head_dim * architecture.bytes_per_kv


def decode_seconds(
    architecture: Architecture, device: Device, *, batch: float, context: float, devices: int = 1
) -> float:
    """The least time of one pass that makes a token for each of `batch` sequences of `context` tokens on average.

    Of the experts those are read that so many tokens choose, each for itself, on average.
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
    """Tokens/s at most; see `decode_seconds`."""
    return batch / decode_seconds(architecture, device, batch=batch, context=context, devices=devices)


def prefill_seconds(
    architecture: Architecture, device: Device, *, tokens: float, attended: float = 0.0, devices: int = 1
) -> float:
    """The least time for prompts of so many `tokens`, which have `attended` tokens before them, summed over the tokens."""
    multiplied = architecture.body + architecture.experts * architecture.expert_share
    attention = 4 * architecture.layers * architecture.heads * architecture.head_dim
    return (2 * multiplied * tokens + attention * attended) / device.flops / devices


def throughput(effort: Effort) -> Throughput | None:
    """How fast the engines were and could have been; None where they made nothing."""
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
    """The smallest power of two of devices, each with `memory` bytes of which the engine may take a `share`, that holds the
    model and the KV cache of a quarter of the `sequences`, and of one that fills the `context`. None where `at_most` devices do
    not.

    Heads are dealt out whole. Where there are more devices than KV heads, several hold the same.
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
    """Whether vLLM can deal a model's heads out to so many devices."""
    few, many = sorted((architecture.kv_heads, devices))
    return architecture.heads % devices == 0 and many % few == 0
