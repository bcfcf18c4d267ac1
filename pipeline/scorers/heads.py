"""Models that transformers computes, and what is read from them at chosen tokens. Imports torch.

`read_logits` computes the numbers of a read-out (see `readouts`) in batches of similar length. Weights are read from
safetensors only, and no code of a model is run.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from huggingface_hub.utils import logging as hub_logging
from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer
from transformers.utils import logging as transformers_logging

from pipeline.core.errors import UsageError
from pipeline.core.missing_models import load_failure
from pipeline.scorers.encoding import EncodedChain
from pipeline.scorers.readouts import Classes
from pipeline.scorers.settings import ModelScorerConfig

LOAD_ERRORS = (OSError, ValueError, ImportError, KeyError, RuntimeError)
"""What transformers and safetensors raise for a model that they cannot load."""
Inputs = dict[str, torch.Tensor]
"""`input_ids` and `attention_mask`, shape (chains, longest)."""


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
