"""Determines whether the model or a setting made a start of vLLM fail, or the place where it was tried. Pure.

Only a cause that is the same on every machine counts as the model's or a setting's: an architecture that vLLM does not know, a
model that the Hub refuses, an argument out of range. Everything else counts as the place's, so that the run tries another place
and goes on with the workers that did start: full or broken devices, processes that were killed, networks, a folder that was
copied in part, another version of a library on one node, and every text that is not known here. Nothing is lost by that,
because a cause that all places share makes all of them fail, which ends the run.

How much memory the KV cache gets is measured on the device, so it is the place's too.
"""

import re

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
