"""Models that transformers computes, and what is read from them at chosen tokens. Imports torch.

`read_logits` computes the numbers of a read-out (see `readouts`) in batches of similar length. Weights are read from
safetensors only, and no code of a model is run: the layers are those of transformers for the model's type (`qwen2`, `llama`,
...). What is read from their last hidden states h:

- `token_classes`: the logits of classes, as the head of transformers computes them.
- `causal`: the next-token logits of two tokens, W[good] h and W[bad] h. Logits of the whole vocabulary are never computed.
- `two_layers`: `Qwen2ForProcessRewardModel`, W2 relu(W1 h + b1) + b2 with the weights `score.0` and `score.2`
  (modeling_qwen2_rm.py of Qwen/Qwen2.5-Math-PRM-7B; `Qwen2ForProcessRewardModel` of vLLM).
- `value_head`: w h + b with the weights `v_head.summary` (`ValueHead` of SkyworkAI/skywork-o1-prm-inference; its dropout does
  nothing in use).

Of the last three, a weight that the files do not hold is an error: transformers would make one up.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.utils import logging as hub_logging
from safetensors import safe_open
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForTokenClassification, AutoTokenizer
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, cached_file
from transformers.utils import logging as transformers_logging

from pipeline.core.errors import UsageError
from pipeline.core.missing_models import load_failure
from pipeline.scorers.encoding import EncodedChain
from pipeline.scorers.readouts import Classes, TokenPair
from pipeline.scorers.settings import ModelScorerConfig

LOAD_ERRORS = (OSError, ValueError, ImportError, KeyError, RuntimeError)
"""What transformers and safetensors raise for a model that they cannot load."""
Inputs = dict[str, torch.Tensor]
"""`input_ids` and `attention_mask`, shape (chains, longest)."""
_NAMED = 3
"""Missing weights that a message names."""
_CHANGES = ("final_logit_softcapping", "logits_scaling", "logit_scale")
"""Keys of config.json by which models change logits after the head: Gemma 2, Granite, Cohere."""
_TOLERANCE, _TOLERANCE_OF_HALF = 1e-4, 3e-2
"""Differences of logits that number formats make, with weights in float32 and in 16 bits."""
Hidden = Callable[[torch.Tensor], torch.Tensor]
"""Hidden states, shape (tokens, width) -> what is read from them, shape (tokens, numbers of the read-out)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenModel:
    """A loaded model. `at`: (inputs, row of each token, column of each token) -> the numbers of its read-out there, shape
    (tokens, numbers of the read-out)."""

    module: torch.nn.Module
    at: Callable[[Inputs, torch.Tensor, torch.Tensor], torch.Tensor]

    @property
    def device(self) -> torch.device:
        return next(self.module.parameters()).device


@contextmanager
def loading(
    what: str,
    model: str,
    *,
    needs: str = "weights in safetensors and an architecture that AutoModelForTokenClassification supports",
) -> Iterator[None]:
    """Raises UsageError for a model that cannot be loaded within. `what`: of it, as the beginning of a sentence; `needs`: what
    its files must hold."""
    try:
        yield
    except LOAD_ERRORS as error:
        raise UsageError(
            f"{what} {model} cannot be loaded: {load_failure(error)}; give model=NAME, a local folder or a Hugging Face name "
            f"that this machine can reach, with {needs}"
        ) from error


def silence_libraries() -> None:
    """Turn off the warnings and progress bars of the libraries that load models; errors name the cause."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    hub_logging.set_verbosity_error()


def load_tokenizer(model: str, revision: str | None = None) -> Any:
    """Load the tokenizer of a model. Raises UsageError if it is missing or cannot be loaded."""
    with loading("the tokenizer of", model):
        return AutoTokenizer.from_pretrained(model, revision=revision, trust_remote_code=False)


def load_config(model: str, revision: str | None = None) -> Any:
    """Load a model's config.json without its weights. Raises UsageError if it is missing or cannot be read."""
    with loading("the model", model):
        return AutoConfig.from_pretrained(model, revision=revision, trust_remote_code=False)


def token_classes(settings: ModelScorerConfig, device: str) -> TokenModel:
    """A model with classes at every token, in float32. Raises UsageError if it cannot be loaded."""
    with loading("the model", settings.model):
        module = AutoModelForTokenClassification.from_pretrained(
            settings.model,
            revision=settings.revision,
            dtype=number_format(settings.dtype),
            use_safetensors=True,
            trust_remote_code=False,
        )
    return classes_of(module.to(device).eval())


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


def good_probabilities(logits: torch.Tensor) -> list[float]:
    """P(good) of each row of logits of two classes, shape (ends of steps, 2)."""
    return [float(share) for share in logits.to(torch.float64).softmax(dim=-1)[:, Classes().good]]


def classes_of(module: Any) -> TokenModel:
    """A model of transformers that returns logits of classes at every token."""
    return TokenModel(module=module, at=lambda inputs, rows, columns: module(**inputs).logits[rows, columns])


def read_logits(
    model: TokenModel, chains: Sequence[EncodedChain], *, batch_tokens: int, pad_id: int
) -> list[torch.Tensor]:
    """What the model reads at the ends of each chain's steps, shape (ends, numbers of the read-out), float32 on the CPU.

    A batch holds chains of similar length with at most `batch_tokens` tokens including padding, or one longer chain.
    """
    found = [torch.zeros(0, 0)] * len(chains)
    device, was_training = model.device, model.module.training
    model.module.eval()
    autocast = torch.autocast("cuda", dtype=torch.bfloat16, enabled=device.type == "cuda" and has_bfloat16())
    with torch.inference_mode(), autocast:
        for batch in like_lengths([len(chain.ids) if chain.ends else 0 for chain in chains], batch_tokens):
            inputs = {
                name: tensor.to(device) for name, tensor in pad([chains[index].ids for index in batch], pad_id).items()
            }
            rows = torch.tensor([row for row, index in enumerate(batch) for _ in chains[index].ends], device=device)
            columns = torch.tensor([end for index in batch for end in chains[index].ends], device=device)
            read = model.at(inputs, rows, columns).float().cpu()
            for index, part in zip(batch, read.split([len(chains[index].ends) for index in batch]), strict=True):
                found[index] = part
    model.module.train(was_training)
    return found


def like_lengths(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """The indices of all lengths above 0 in batches, longest first, so that a lack of memory shows in the first batch."""
    batch: list[int] = []
    for index in sorted((index for index, length in enumerate(lengths) if length), key=lambda index: -lengths[index]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def pad(chains: Sequence[Sequence[int]], pad_id: int) -> Inputs:
    """`input_ids` and `attention_mask`, shape (chains, longest), padded on the right."""
    longest = max(map(len, chains))
    ids = torch.full((len(chains), longest), pad_id)
    mask = torch.zeros((len(chains), longest), dtype=torch.long)
    for row, chain in enumerate(chains):
        ids[row, : len(chain)] = torch.tensor(chain)
        mask[row, : len(chain)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def context_of(config: Any, tokenizer: Any) -> int:
    """The largest number of tokens that a model and its tokenizer allow."""
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    known = [int(limit) for limit in (positions, tokenizer.model_max_length) if limit]
    return min(known)


def device_here() -> str:
    """`cuda` if there is a GPU, else `cpu`."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def has_bfloat16() -> bool:
    """Whether the GPU supports bfloat16. Forward passes then use it."""
    return bool(torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False))


def number_format(dtype: str) -> torch.dtype:
    """The type of a setting `dtype`; `auto` is float32. Raises UsageError for another name."""
    found = torch.float32 if dtype == "auto" else getattr(torch, dtype, None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise UsageError(
            f"scorer.dtype={dtype}: there is no such number format: give auto, float32, bfloat16 or float16"
        )
    return found
