"""Models of others that are read at chosen tokens: causal language models, and heads that transformers lacks. Imports torch.

The layers are those of transformers for the model's type (`qwen2`, `llama`, ...), without the code that some models bring. What
is read from their last hidden states h:

- `causal`: the next-token logits of two tokens, W[good] h and W[bad] h. Logits of the whole vocabulary are never computed.
- `two_layers`: `Qwen2ForProcessRewardModel`, W2 relu(W1 h + b1) + b2 with the weights `score.0` and `score.2`
  (modeling_qwen2_rm.py of Qwen/Qwen2.5-Math-PRM-7B; `Qwen2ForProcessRewardModel` of vLLM).
- `value_head`: w h + b with the weights `v_head.summary` (`ValueHead` of SkyworkAI/skywork-o1-prm-inference; its dropout does
  nothing in use).

A weight that the files do not hold is an error: transformers would make one up.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import AutoModel, AutoModelForCausalLM
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, cached_file

from pipeline.core.errors import UsageError
from pipeline.scorers.heads import Inputs, TokenModel, loading, number_format
from pipeline.scorers.readouts import TokenPair
from pipeline.scorers.settings import ModelScorerConfig

_NAMED = 3
"""Missing weights that a message names."""
_CHANGES = ("final_logit_softcapping", "logits_scaling", "logit_scale")
"""Keys of config.json by which models change logits after the head: Gemma 2, Granite, Cohere."""
_TOLERANCE, _TOLERANCE_OF_HALF = 1e-4, 3e-2
"""Differences of logits that number formats make, with weights in float32 and in 16 bits."""
Hidden = Callable[[torch.Tensor], torch.Tensor]
"""Hidden states, shape (tokens, width) -> what is read from them, shape (tokens, numbers of the read-out)."""


def causal(settings: ModelScorerConfig, device: str, pair: TokenPair) -> TokenModel:
    """A causal language model, read as the logits of a pair of tokens. Raises UsageError if it cannot be loaded, or if its
    logits are not those of its last layer alone."""
    module = _loaded(AutoModelForCausalLM, settings, "a language model in safetensors that transformers supports")
    module.to(device).eval()
    head = module.get_output_embeddings()
    rows = torch.tensor([pair.good, pair.bad], device=device)
    bias = None if getattr(head, "bias", None) is None else head.bias[rows]

    def read(hidden: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(hidden, head.weight[rows], bias)

    model = _read_from(module, module.base_model, read)
    _check_logits(settings, model, rows)
    return model


def two_layers(settings: ModelScorerConfig, device: str, *, classes: int) -> TokenModel:
    """Qwen's head with `classes` classes. Raises UsageError if it cannot be loaded."""
    base = _base(settings)
    width = base.config.hidden_size
    shapes = {
        "score.0.weight": (width, width),
        "score.0.bias": (width,),
        "score.2.weight": (classes, width),
        "score.2.bias": (classes,),
    }
    head = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, classes))
    return _with_head(settings, device, base, head, "score.", shapes)


def value_head(settings: ModelScorerConfig, device: str) -> TokenModel:
    """Skywork's head with one number. Raises UsageError if it cannot be loaded."""
    base = _base(settings)
    width = base.config.hidden_size
    shapes = {"v_head.summary.weight": (1, width), "v_head.summary.bias": (1,)}
    return _with_head(settings, device, base, torch.nn.Linear(width, 1), "v_head.summary.", shapes)


def _with_head(
    settings: ModelScorerConfig,
    device: str,
    base: Any,
    head: torch.nn.Module,
    prefix: str,
    shapes: Mapping[str, tuple[int, ...]],
) -> TokenModel:
    found = _weights(settings, shapes)
    head.load_state_dict({name.removeprefix(prefix): tensor for name, tensor in found.items()})
    module = torch.nn.ModuleDict({"base": base, "head": head.to(base.dtype)}).to(device).eval()
    return _read_from(module, base, head)


def _read_from(module: torch.nn.Module, base: Any, read: Hidden) -> TokenModel:
    def at(inputs: Inputs, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        return read(base(**inputs, use_cache=False).last_hidden_state[rows, columns])

    return TokenModel(module=module, at=at)


def _base(settings: ModelScorerConfig) -> Any:
    return _loaded(AutoModel, settings, "layers in safetensors that transformers supports")


def _loaded(loader: Any, settings: ModelScorerConfig, needs: str) -> Any:
    with loading("the model", settings.model, needs=needs):
        module, report = loader.from_pretrained(
            settings.model,
            revision=settings.revision,
            dtype=number_format(settings.dtype),
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    if missing := sorted(map(str, report["missing_keys"])):
        raise _lacking(settings, missing)
    return module


def _weights(settings: ModelScorerConfig, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
    """The tensors of these names. Raises UsageError where one is missing or has another shape."""
    with loading("the head of", settings.model, needs="its weights in safetensors"):
        where = _files(settings, tuple(shapes))
        found: dict[str, torch.Tensor] = {}
        for name, file in where.items():
            with safe_open(file, framework="pt") as tensors:
                if name in tensors.keys():  # noqa: SIM118
                    found[name] = tensors.get_tensor(name)
    if missing := [name for name in shapes if name not in found]:
        raise _lacking(settings, missing)
    for name, shape in shapes.items():
        if tuple(found[name].shape) != shape:
            raise UsageError(
                f"scorer.model={settings.model} has {name} of shape {tuple(found[name].shape)}, and scorer={settings.kind} "
                f"reads {shape}: choose another scorer or model"
            )
    return found


def _files(settings: ModelScorerConfig, names: Sequence[str]) -> dict[str, Path]:
    """The safetensors file that may hold each tensor; a name that the index of a model lacks is left out."""

    def file(name: str) -> Path | None:
        found = cached_file(
            settings.model, name, revision=settings.revision, _raise_exceptions_for_missing_entries=False
        )
        return None if found is None else Path(found)

    if (whole := file(SAFE_WEIGHTS_NAME)) is not None:
        return dict.fromkeys(names, whole)
    index = file(SAFE_WEIGHTS_INDEX_NAME)
    if index is None:
        raise OSError(f"it has neither {SAFE_WEIGHTS_NAME} nor {SAFE_WEIGHTS_INDEX_NAME}")
    parts = json.loads(index.read_text("utf-8"))["weight_map"]
    files = {name: file(str(parts[name])) for name in names if name in parts}
    return {name: found for name, found in files.items() if found is not None}


def _lacking(settings: ModelScorerConfig, missing: Sequence[str]) -> UsageError:
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    return UsageError(
        f"scorer.model={settings.model} lacks the weights {', '.join(missing[:_NAMED])}{more}, which scorer={settings.kind} "
        "reads: choose another scorer or model"
    )


def _check_logits(settings: ModelScorerConfig, model: TokenModel, rows: torch.Tensor) -> None:
    """Raise UsageError where the model's own logits are not those of its head alone, by its config or for two tokens."""
    config = model.module.config.get_text_config()
    changed = any(getattr(config, name, None) not in (None, 1) for name in _CHANGES)
    inputs = {"input_ids": rows[None], "attention_mask": torch.ones_like(rows)[None]}
    first, columns = torch.zeros_like(rows), torch.arange(len(rows), device=rows.device)
    with torch.inference_mode():
        expected = model.module(**inputs).logits[0][:, rows].float()
        found = model.at(inputs, first, columns).float()
    weights = next(model.module.parameters()).dtype
    tolerance = _TOLERANCE if weights == torch.float32 else _TOLERANCE_OF_HALF
    if changed or not torch.allclose(found, expected, atol=tolerance, rtol=tolerance):
        raise UsageError(
            f"scorer.model={settings.model} changes its logits after its last layer, such as by a cap or a scale, which "
            f"scorer={settings.kind} does not compute: choose another scorer or model"
        )
