"""What a model says at the ends of steps: the one way from chains to logits, for validation and for `score`."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from pipeline.train.data import padded
from pipeline.train.model import GOOD, has_bfloat16
from pipeline.train.text import EncodedChain


def end_logits(model: Any, chains: Sequence[EncodedChain], *, batch_tokens: int, pad_id: int) -> list[torch.Tensor]:
    """The logits of each chain, its ends x 2, float32 on the CPU. Chains of like length go together, `batch_tokens` tokens at a
    time with padding, or one longer chain."""
    found = [torch.zeros(0, 2)] * len(chains)
    was_training = model.training
    model.eval()
    autocast = torch.autocast("cuda", dtype=torch.bfloat16, enabled=has_bfloat16() and model.device.type == "cuda")
    with torch.inference_mode(), autocast:
        for batch in like_lengths([len(chain.ids) for chain in chains], batch_tokens):
            inputs = padded([chains[index].ids for index in batch], pad_id)
            logits = model(**{name: tensor.to(model.device) for name, tensor in inputs.items()}).logits.float().cpu()
            for row, index in enumerate(batch):
                found[index] = logits[row, list(chains[index].ends)]
    model.train(was_training)
    return found


def good_probabilities(logits: torch.Tensor) -> list[float]:
    """P(good) of each row of logits, ends x 2."""
    return [float(share) for share in logits.to(torch.float64).softmax(dim=-1)[:, GOOD]]


def like_lengths(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """The indices of all lengths above 0 in batches, the longest first, so that memory that is enough at first is enough."""
    batch: list[int] = []
    for index in sorted((index for index, length in enumerate(lengths) if length), key=lambda index: -lengths[index]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
