"""What an engine runs on, and how far it is from what that can do: frozen records, without behaviour."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """The sizes of a decoder-only transformer, as far as its speed depends on them.

    `body` counts the parameters of all layers outside of their experts, `experts` those of all experts; of the latter a token
    uses `expert_share`. Embeddings have `vocab` x `hidden` parameters, twice where the output layer is not `tied` to them.
    Norms and biases, below 0.1 %, are left out. Bytes are those of one weight of a layer, of one weight of the embeddings,
    which quantisation leaves alone, and of one element of the KV cache. `windowed_layers` look back `window` tokens at most.
    `context` is the longest the model was made for, in tokens.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool
    body: int
    bytes_per_weight: float
    bytes_per_embedding: float
    bytes_per_kv: float
    context: int
    experts: int = 0
    expert_share: float = 1.0
    windowed_layers: int = 0
    window: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What one device can do at best: `bandwidth` of its memory in bytes/s, dense FLOP/s in the engine's number format, and its
    memory in bytes."""

    name: str
    bandwidth: float
    flops: float
    memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What one engine runs on: a model on `devices` equal devices. What is None is not known, and `unknown` says why, and what
    to do, in one line for the user."""

    architecture: Architecture | None = None
    device: Device | None = None
    devices: int = 1
    unknown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """How fast the engines of a run were, and how fast they could have been.

    `tokens_per_second` are those of `engines` engines together. `batch`: sequences per forward pass on average, None for
    engines that count no passes, and `context`: tokens in front of a generated one. `share`: what the hardware would have
    needed at least for this decoding at this batch and context, over the time that it took; `prefill_share`: the same for the
    prompts that were computed, which comes on top. None where `hardware` does not tell. `prefill_ratio`: prompt tokens computed
    over distinct ones, None where that is not known. `idle` is the share of all places for requests, over all time, that stood
    empty while nothing waited, and `tail` the part of it after the last input was handed out. `grading`: the time of verdicts
    over that of the engines.
    """

    hardware: Hardware
    engines: float
    tokens_per_second: float
    batch: float | None
    context: float
    idle: float
    grading: float
    tail: float | None = None
    prefill_ratio: float | None = None
    share: float | None = None
    prefill_share: float | None = None
