"""Losses on the two logits at the last token of each step: tensors in, one number per step out.

A step with logits (l0, l1) has P(good) = softmax(l)_1 with every loss, so all models are used in the same way.
"""

from collections.abc import Mapping

import torch
from torch.nn import functional

from pipeline.train.settings import Loss
from pipeline.train.targets import IGNORED


def batch_loss(
    loss: Loss, logits: torch.Tensor, batch: Mapping[str, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum of the losses over all steps that `loss` can use, and their number.

    `logits`: shape (..., 2). `batch`: tensors of shape (...), with the names of `data.target_tensors`.
    """
    match loss:
        case Loss.hard:
            at = batch["labels"] != IGNORED
            losses = hard_cross_entropy(logits[at], batch["labels"][at])
        case Loss.soft:
            at = batch["value_mask"]
            losses = soft_cross_entropy(logits[at], batch["values"][at])
    return losses.sum(), at.sum().float()


def hard_cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """-log P(label)."""
    return functional.cross_entropy(logits, labels, reduction="none")


def soft_cross_entropy(logits: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """-(v log P(good) + (1 - v) log P(bad)), which is smallest at P(good) = v."""
    logs = functional.log_softmax(logits, dim=-1)
    return -(values * logs[:, 1] + (1 - values) * logs[:, 0])
