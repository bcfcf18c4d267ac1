"""The `config.json` of a model that is not loaded yet: out of its folder, or from Hugging Face."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.architectures import UnknownArchitecture, architecture_of
from pipeline.choices import PolicyKind
from pipeline.config import PolicyConfig
from pipeline.hardware import Architecture

_NAME = "config.json"


def planned_architecture(policy: PolicyConfig) -> Architecture | None:
    """The sizes of the model that a policy will load; None where they cannot be told from here, for whatever reason: the engine
    says more of it."""
    if policy.kind is not PolicyKind.hf:
        return None
    try:
        return architecture_of(_read(policy), dtype=policy.dtype, quantization=policy.quantization)
    except (UnknownArchitecture, ImportError, OSError, ValueError):
        return None


def _read(policy: PolicyConfig) -> Mapping[str, Any]:
    folder = Path(policy.model).expanduser()
    if folder.is_dir():
        path = folder / _NAME
    else:
        from huggingface_hub import hf_hub_download

        path = Path(hf_hub_download(policy.model, _NAME, revision=policy.revision))
    config = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        raise UnknownArchitecture(f"{_NAME} holds no object")
    return config
