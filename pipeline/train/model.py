"""A model with two classes at every token, made from a policy's weights for training.

Weights are read from safetensors only, and no code of a model is run.
"""

from typing import Any

import torch
from transformers import AutoModelForTokenClassification

from pipeline.core.errors import UsageError
from pipeline.scorers.encoding import SEPARATOR_KEY, STEPS_KEY
from pipeline.scorers.heads import loading

_NAMES = {0: "bad", 1: "good"}


def new_model(model: str, revision: str | None, *, separator: str, layers: int | None, steps: str | None = None) -> Any:
    """A policy's weights with a new head, in float32. With `layers`, all but the head and that many top layers are frozen.
    `steps`: how the texts of the training were divided (`DataConfig.steps`); None: it is not known.

    Raises UsageError if the model cannot be loaded or has fewer layers.
    """
    with loading("the model", model):
        loaded = AutoModelForTokenClassification.from_pretrained(
            model,
            revision=revision,
            num_labels=len(_NAMES),
            id2label=_NAMES,
            label2id={name: number for number, name in _NAMES.items()},
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
        )
    setattr(loaded.config, SEPARATOR_KEY, separator)
    if steps is not None:
        setattr(loaded.config, STEPS_KEY, steps)
    if layers is not None:
        _freeze(loaded, model, layers)
    return loaded


def _freeze(loaded: Any, model: str, layers: int) -> None:
    trunk = loaded.base_model
    stack = getattr(trunk, "layers", None)
    if stack is None or layers > len(stack):
        have = "no list of layers" if stack is None else f"{len(stack)} layers"
        raise UsageError(f"layers={layers}: {model} has {have}; lower it, or leave it out to train the whole model")
    trunk.requires_grad_(False)
    if layers:
        for part in (*stack[-layers:], trunk.norm):
            part.requires_grad_(True)
