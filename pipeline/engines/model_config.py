"""The `config.json` of a model that is not loaded yet: out of its folder, or from Hugging Face."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.core.errors import PolicyError
from pipeline.core.hardware import Architecture
from pipeline.engines.hardware.architectures import UnknownArchitecture, architecture_of
from pipeline.engines.vllm.settings import VllmConfig

_NAME = "config.json"
_LENGTHS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)


def planned_architecture(
    model: str, revision: str | None, *, dtype: str, quantization: str | None
) -> Architecture | None:
    """The sizes of a model, a name or a folder; None where they cannot be told from here, for whatever reason: the engine says
    more of it."""
    try:
        return architecture_of(_read(model, revision), dtype=dtype, quantization=quantization)
    except (UnknownArchitecture, ImportError, OSError, ValueError):
        return None


def planned_context(policy: VllmConfig, model: str) -> int:
    """The context in tokens that a policy will have with a model, a name or a folder.

    It is the smallest length that `config.json` states, as vLLM takes it. Raises PolicyError where that states none, or cannot
    be had.
    """
    if policy.max_model_len is not None:
        return policy.max_model_len
    try:
        config = _read(model, policy.revision)
    except (UnknownArchitecture, ImportError, OSError, ValueError) as error:
        raise PolicyError(f"{_NAME} of {model} cannot be read ({error}): set policy.max_model_len") from error
    parts = [config, *(part for part in [config.get("text_config")] if isinstance(part, dict))]
    stated = [part[key] for part in parts for key in _LENGTHS if isinstance(part.get(key), int)]
    if not stated:
        raise PolicyError(f"{_NAME} of {model} does not state the model's context: set policy.max_model_len")
    return int(min(stated))


def _read(model: str, revision: str | None) -> Mapping[str, Any]:
    folder = Path(model).expanduser()
    if folder.is_dir():
        path = folder / _NAME
    else:
        from huggingface_hub import hf_hub_download

        path = Path(hf_hub_download(model, _NAME, revision=revision))
    config = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        raise UnknownArchitecture(f"{_NAME} holds no object")
    return config
