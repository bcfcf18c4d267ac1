"""Turns vLLM's error and the captured output of its processes into an error of one line: why a model cannot be loaded, and a
remedy. Its type says whether the model, a setting or the place is to blame (see `start_causes`)."""

import re

from pipeline.core.errors import Name, PlaceError, PolicyError, said
from pipeline.engines.vllm.death import death_cause, dying_words, shortened, without_colours, without_tokens
from pipeline.engines.vllm.start_causes import blames_model

MAX_CAUSE_CHARACTERS = 300

_CAUSE = re.compile(r"\b[A-Za-z_.]*(?:Error|Exception): (.+)")
_ENDED = "Engine core initialization failed"
# Wrappers of the cause: raised by vLLM in our process, and by the library that checks its settings.
_NO_CAUSE = re.compile(rf"{_ENDED}|\d+ validation errors? for ")

# Words in the cause and the remedy, most specific first.
_REMEDIES = (
    (
        ("could run code",),
        "choose a model whose weights are safetensors; this protection is always on",
    ),
    (
        ("ended at the start",),
        "look at the machine: `dmesg` for memory and devices, nvidia-smi for the GPU",
    ),
    (
        ("not a valid model identifier", "repo id", "repository", "couldn't connect", "offline mode", "404 client"),
        "give {policy.model} a local folder or a Hugging Face name that this machine can reach",
    ),
    (
        ("model weights", "does not appear to have a file", "can't load tokenizer"),
        "check that {policy.model} has all its files: a local folder must be complete on every node",
    ),
    (
        ("unexpected keyword argument",),
        "check that every node has the same versions of stepvalue and vLLM",
    ),
    (
        ("memory on device", "out of memory", "memory error"),
        "the GPU is full or too small: end other processes on it (see nvidia-smi), lower {policy.memory_share}, or raise "
        "{policy.tensor_parallel}",
    ),
    (
        ("kv cache is needed", "estimated maximum model length", "no available memory for the cache"),
        "lower {policy.max_model_len}, give the KV cache more memory with {policy.memory_share} (GPU) or {policy.kv_cache_gib} "
        "(CPU), or raise {policy.tensor_parallel}",
    ),
    (("max_num_batched_tokens",), "change {policy.max_num_batched_tokens}"),
    (("max_model_len", "max_position_embeddings"), "lower {policy.max_model_len}"),
    (("speculative", "draft"), "check {policy.speculative_tokens} and {policy.speculative_model}"),
    (("cache_dtype", "kv_cache_dtype", "fp8"), "check {policy.kv_cache_dtype} and {policy.quantization}"),
    (
        ("memory", "kv cache"),
        "lower {policy.max_model_len} or {policy.max_num_seqs}, change {policy.memory_share} (GPU) or {policy.kv_cache_gib} "
        "(CPU), or raise {policy.tensor_parallel}",
    ),
    (("trust_remote_code", "custom code"), "choose a model that needs no custom code: trust_remote_code is always off"),
    (
        ("cuda", "gpu", "device", "world size"),
        "check that as many GPUs as {policy.tensor_parallel} requests exist and are free",
    ),
)
# What torch says of weights that it refuses. It goes on to say how to switch this protection off.
_REFUSED_WEIGHTS = "weights only load failed"
_REFUSED = "its weights are a pickle that holds more than tensors, which could run code when it is loaded"
_OTHERWISE = "check {policy.model} and the other {policy} settings"


def load_error(model: str, error: str, printed: str, kept: str = "") -> PolicyError:
    """The error to raise, with the model, the innermost reported cause and the remedy: a PlaceError unless the model or a
    setting is to blame. `printed`: by vLLM and its processes. `kept`: a clause that says where that is."""
    cause = _cause(error, printed)
    lowered = cause.lower()
    remedy = next((remedy for words, remedy in _REMEDIES if any(word in lowered for word in words)), _OTHERWISE)
    shown = shortened(cause, MAX_CAUSE_CHARACTERS).rstrip(".")
    kind = PolicyError if blames_model(cause) else PlaceError
    return kind("the ", Name("policy"), f" {model} cannot be loaded: {shown}; ", *said(remedy), kept)


def _cause(error: str, printed: str) -> str:
    """The innermost reported cause, without line breaks and access tokens. What stands before the failure was survived."""
    printed = without_colours(printed)
    causes = [cause for cause in _CAUSE.findall(dying_words(printed) or printed) if not _NO_CAUSE.search(cause)]
    if causes:
        cause = causes[0]
    elif _ENDED in error:
        cause = f"vLLM's processes ended at the start: {death_cause(printed, {})}"
    else:
        cause = error
    if _REFUSED_WEIGHTS in cause.lower():
        cause = _REFUSED
    return without_tokens(" ".join(cause.split()))


def check_context(model: str, *, context: int, max_tokens: int) -> None:
    """Raise PolicyError where the context is too short for any prompt with a completion. Single prompts are rejected later."""
    if context <= max_tokens:
        raise PolicyError(
            *said(
                "the {policy} {model} has a context of {context} tokens, which is too ", model=model, context=context
            ),
            *said("short for a prompt next to {sampling.max_tokens}={most}: lower that, or raise ", most=max_tokens),
            *said("{policy.max_model_len} if the model permits it"),
        )
