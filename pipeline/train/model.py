"""Models with two classes at every token: made from a policy's weights for training, and loaded for scoring.

`end_logits` computes the logits of chains, for validation and for `score`.

Weights are read from safetensors only, and no code of a model is run.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from huggingface_hub.utils import logging as hub_logging
from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer
from transformers.utils import logging as transformers_logging

from pipeline.core.errors import UsageError
from pipeline.core.missing_models import load_failure
from pipeline.train.data import pad
from pipeline.train.text import EncodedChain

BAD, GOOD = 0, 1
SEPARATOR_KEY = "stepvalue_separator"
"""The key in a model's config.json for the text after the problem and after every step in training."""
_NAMES = {BAD: "bad", GOOD: "good"}
_HEADS = ("ForTokenClassification",)


def silence_libraries() -> None:
    """Turn off the warnings and progress bars of the libraries that load models; errors name the cause."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    hub_logging.set_verbosity_error()


def load_tokenizer(model: str, revision: str | None = None) -> Any:
    """Load the tokenizer of a model. Raises UsageError if it is missing or cannot be loaded."""
    try:
        return AutoTokenizer.from_pretrained(model, revision=revision, trust_remote_code=False)
    except (OSError, ValueError, ImportError, KeyError) as error:
        raise _not_loaded("the tokenizer of", model, error) from error


def load_config(model: str, revision: str | None = None) -> Any:
    """Load a model's config.json without its weights. Raises UsageError if it is missing or cannot be read."""
    try:
        return AutoConfig.from_pretrained(model, revision=revision, trust_remote_code=False)
    except (OSError, ValueError, ImportError, KeyError) as error:
        raise _not_loaded("the model", model, error) from error


def new_model(model: str, revision: str | None, *, separator: str, layers: int | None) -> Any:
    """A policy's weights with a new head, in float32. With `layers`, all but the head and that many top layers are frozen.

    Raises UsageError if the model cannot be loaded or has fewer layers.
    """
    try:
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
    except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
        raise _not_loaded("the model", model, error) from error
    setattr(loaded.config, SEPARATOR_KEY, separator)
    if layers is not None:
        _freeze(loaded, model, layers)
    return loaded


def trained_model(model: str, device: str) -> Any:
    """A model with a trained head, in float32, for inference. Raises UsageError if it has no such head or cannot be loaded."""
    try:
        config = AutoConfig.from_pretrained(model, trust_remote_code=False)
        kinds = tuple(config.architectures or ())
        if not any(kind.endswith(_HEADS) for kind in kinds) or config.num_labels != len(_NAMES):
            what = f"{', '.join(kinds) or 'of no known kind'}, {config.num_labels} labels"
            raise UsageError(f"model={model} cannot score steps ({what}): name a folder that `train` has written")
        loaded = AutoModelForTokenClassification.from_pretrained(
            model, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
        )
    except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
        raise _not_loaded("the model", model, error) from error
    return loaded.to(device).eval()


def end_logits(model: Any, chains: Sequence[EncodedChain], *, batch_tokens: int, pad_id: int) -> list[torch.Tensor]:
    """The logits of each chain, shape (ends of steps, 2), float32 on the CPU. A batch holds chains of similar length with at
    most `batch_tokens` tokens including padding, or one longer chain."""
    found = [torch.zeros(0, 2)] * len(chains)
    was_training = model.training
    model.eval()
    autocast = torch.autocast("cuda", dtype=torch.bfloat16, enabled=has_bfloat16() and model.device.type == "cuda")
    with torch.inference_mode(), autocast:
        for batch in like_lengths([len(chain.ids) for chain in chains], batch_tokens):
            inputs = pad([chains[index].ids for index in batch], pad_id)
            logits = model(**{name: tensor.to(model.device) for name, tensor in inputs.items()}).logits.float().cpu()
            for row, index in enumerate(batch):
                found[index] = logits[row, list(chains[index].ends)]
    model.train(was_training)
    return found


def good_probabilities(logits: torch.Tensor) -> list[float]:
    """P(good) of each row of logits, shape (ends of steps, 2)."""
    return [float(share) for share in logits.to(torch.float64).softmax(dim=-1)[:, GOOD]]


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


def _not_loaded(what: str, model: str, error: Exception) -> UsageError:
    return UsageError(
        f"{what} {model} cannot be loaded: {load_failure(error)}; give model=NAME, a local folder or a Hugging Face name that "
        "this machine can reach, with weights in safetensors and an architecture that AutoModelForTokenClassification supports"
    )
