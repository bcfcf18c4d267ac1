"""Why a policy could not be loaded, in one line with the remedy: from vLLM's error and what its processes printed."""

import re

MAX_CAUSE_CHARACTERS = 300

_CAUSE = re.compile(r"\b[A-Za-z_.]*(?:Error|Exception): (.+)")
# vLLM raises this in our process and prints the cause in its own.
_NO_CAUSE = "Engine core initialization failed"

# Words of the cause, most telling first, and what helps then.
_REMEDIES = (
    (
        ("not a valid model identifier", "repo id", "repository", "couldn't connect", "offline mode", "404 client"),
        "give policy.model a local folder or a Hugging Face name that this machine can reach",
    ),
    (("max_model_len", "max_position_embeddings"), "lower policy.max_model_len"),
    (
        ("memory", "kv cache"),
        "lower policy.max_model_len or policy.max_num_seqs, change policy.memory_share (GPU) or policy.kv_cache_gib (CPU), "
        "or raise policy.tensor_parallel",
    ),
    (("trust_remote_code", "custom code"), "take a model that needs no code of its own: trust_remote_code stays off"),
    (
        ("cuda", "gpu", "device", "world size"),
        "check that the GPUs that policy.tensor_parallel asks for are there and free",
    ),
)
_OTHERWISE = "check policy.model and the other policy settings"


def load_failure(model: str, error: str, printed: str) -> str:
    """One line: which model, the innermost cause that was told, and what to do."""
    causes = [cause for cause in _CAUSE.findall(printed) if _NO_CAUSE not in cause]
    cause = " ".join((causes[0] if causes else error).split())
    told = cause.lower()
    remedy = next((remedy for words, remedy in _REMEDIES if any(word in told for word in words)), _OTHERWISE)
    if len(cause) > MAX_CAUSE_CHARACTERS:
        cause = cause[:MAX_CAUSE_CHARACTERS].rsplit(" ", 1)[0] + " ..."
    return f"the policy {model} cannot be loaded: {cause.rstrip('.')}; {remedy}"
