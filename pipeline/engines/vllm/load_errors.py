"""Turns vLLM's error and the captured output of its processes into an error of one line: why a model cannot be loaded, and a
remedy. Its type says whether the model, a setting or the place is to blame (see `start_causes`)."""

import re
from dataclasses import dataclass

from pipeline.core.errors import PlaceError, PolicyError
from pipeline.engines.vllm.death import death_cause, dying_words, shortened, without_colours, without_tokens
from pipeline.engines.vllm.start_causes import blames_model

MAX_CAUSE_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What messages call the model and its settings. `noun`: also the section of its settings. `context`: the name there of the
    setting that limits its context."""

    noun: str
    context: str

    def of(self, remedy: str) -> str:
        """A remedy for a policy in these terms."""
        return remedy.replace(POLICY.context, self.context).replace(POLICY.noun, self.noun)


POLICY = Terms(noun="policy", context="max_model_len")
SCORER = Terms(noun="scorer", context="max_length")

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
        "give policy.model a local folder or a Hugging Face name that this machine can reach",
    ),
    (
        ("model weights", "does not appear to have a file", "can't load tokenizer"),
        "check that policy.model has all its files: a local folder must be complete on every node",
    ),
    (
        ("unexpected keyword argument",),
        "check that every node has the same versions of stepvalue and vLLM",
    ),
    (
        ("memory on device", "out of memory", "memory error"),
        "the GPU is full or too small: end other processes on it (see nvidia-smi), lower policy.memory_share, or raise "
        "policy.tensor_parallel",
    ),
    (
        ("kv cache is needed", "estimated maximum model length", "no available memory for the cache"),
        "lower policy.max_model_len, give the KV cache more memory with policy.memory_share (GPU) or policy.kv_cache_gib "
        "(CPU), or raise policy.tensor_parallel",
    ),
    (("max_num_batched_tokens",), "change policy.max_num_batched_tokens"),
    (("max_model_len", "max_position_embeddings"), "lower policy.max_model_len"),
    (("speculative", "draft"), "check policy.speculative_tokens and policy.speculative_model"),
    (("cache_dtype", "kv_cache_dtype", "fp8"), "check policy.kv_cache_dtype and policy.quantization"),
    (
        ("memory", "kv cache"),
        "lower policy.max_model_len or policy.max_num_seqs, change policy.memory_share (GPU) or policy.kv_cache_gib (CPU), "
        "or raise policy.tensor_parallel",
    ),
    (("trust_remote_code", "custom code"), "choose a model that needs no custom code: trust_remote_code is always off"),
    (
        ("cuda", "gpu", "device", "world size"),
        "check that as many GPUs as policy.tensor_parallel requests exist and are free",
    ),
)
# What torch says of weights that it refuses. It goes on to say how to switch this protection off.
_REFUSED_WEIGHTS = "weights only load failed"
_REFUSED = "its weights are a pickle that holds more than tensors, which could run code when it is loaded"
_OTHERWISE = "check policy.model and the other policy settings"


def load_error(model: str, error: str, printed: str, kept: str = "", terms: Terms = POLICY) -> PolicyError:
    """The error to raise: a PlaceError unless the model or a setting is to blame. `printed`: by vLLM and its processes. `kept`:
    a clause that says where that is."""
    kind = PolicyError if blames_model(_cause(error, printed)) else PlaceError
    return kind(load_failure(model, error, printed, terms) + kept)


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


def load_failure(model: str, error: str, printed: str, terms: Terms = POLICY) -> str:
    """One line with the model, the innermost reported cause, and the remedy."""
    cause = _cause(error, printed)
    lowered = cause.lower()
    remedy = next((remedy for words, remedy in _REMEDIES if any(word in lowered for word in words)), _OTHERWISE)
    shown = shortened(cause, MAX_CAUSE_CHARACTERS).rstrip(".")
    return f"the {terms.noun} {model} cannot be loaded: {shown}; {terms.of(remedy)}"


def check_context(model: str, *, context: int, max_tokens: int) -> None:
    """Raise PolicyError where the context is too short for any prompt with a completion. Single prompts are rejected later."""
    if context <= max_tokens:
        raise PolicyError(
            f"the policy {model} has a context of {context} tokens, which is too short for a prompt next to "
            f"sampling.max_tokens={max_tokens}: lower that, or raise policy.max_model_len if the model permits it"
        )
