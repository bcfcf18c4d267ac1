"""Turns vLLM's error and the captured output of its processes into an error of one line: why a model cannot be loaded, and a
remedy. Its type says whether the model, a setting or the place is to blame (see `blames_model`).

Only a cause that is the same on every machine counts as the model's or a setting's: an architecture that vLLM does not know, a
model that the Hub refuses, an argument out of range. Everything else counts as the place's, so that the run tries another place
and goes on with the workers that did start: full or broken devices, processes that were killed, networks, a folder that was
copied in part, another version of a library on one node, and every text that is not known here. Nothing is lost by that,
because a cause that all places share makes all of them fail, which ends the run.

How much memory the KV cache gets is measured on the device, so it is the place's too.
"""

import re

from pipeline.core.errors import Name, PlaceError, PolicyError, said
from pipeline.engines.vllm.death import death_cause, dying_words, shortened, without_colours, without_tokens

# These go first: "decreasing `max_model_len`" is also part of messages about full devices.
_OF_THE_PLACE = re.compile(
    # Memory of the device and of the machine.
    r"out of ?memory|memory on device|memory on node|memory profiling|memory for the cache|kv cache is needed"
    r"|cannot allocate memory|no space left|shared memory|/dev/shm"
    # Devices, their driver, and the links between them.
    r"|cuda (?:driver )?(?:error|failure|initialization)|cudaerror|cuda_error|cublas|cudnn|no cuda gpus|nvidia driver"
    r"|\becc\b|\bxid\b|nvml|device-side assert|illegal memory access|fallen off the bus|\bnccl|\bgloo\b|world size"
    # What differs between the machines of a cluster: GPUs, the memory that is left, libraries.
    r"|current gpu|cache blocks|failed to be inspected|undefined symbol"
    # The network and other processes.
    r"|couldn't connect|connection|timed out|time-?out|temporary failure|50[0234] server|429 client|errno"
    r"|address already in use"
)
_OF_THE_MODEL = re.compile(
    # The name of the model, and access to it.
    r"not a valid model identifier|is not a local folder|repo id must|repository not found|repositorynotfound|revisionnotfound"
    r"|invalid repository|gated repo|40[134] client|entry not found"
    # Its architecture.
    r"|model architectures|does not recognize this architecture|unrecognized model|unrecognized configuration"
    r"|unsupported architecture|model_type|invalid json|custom code|trust_remote_code"
    r"|pickle that holds more than tensors"
    # Settings that vLLM checks before it uses a device.
    r"|validation errors? for|max_model_len|max_position_embeddings|max_num_batched_tokens|max_num_seqs"
    r"|unrecognized arguments|unknown quantization|quantization method|unknown dtype"
    r"|must be divisible by|speculative|draft model|load_format|load format"
)


def blames_model(cause: str) -> bool:
    """Whether the model or a setting is to blame for `cause`, the message of the innermost error of a failed start.

    False: the place is, or it is unknown. Case and line breaks do not matter.
    """
    words = " ".join(cause.lower().split())
    return not _OF_THE_PLACE.search(words) and bool(_OF_THE_MODEL.search(words))


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
