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
    """The weighted sum of the losses over all steps that `loss` can use, and the sum of their weights.

    `logits`: shape (..., 2). `batch`: tensors of shape (...), with the names of `data.target_tensors`.
    """
    match loss:
        case Loss.hard:
            at = batch["labels"] != IGNORED
            losses = hard_cross_entropy(logits[at], batch["labels"][at])
        case Loss.soft:
            at = batch["value_mask"]
            losses = soft_cross_entropy(logits[at], batch["values"][at])
        case Loss.beta_binomial:
            at = batch["n_rollouts"] > 0
            losses = beta_binomial(logits[at], batch["n_correct"][at], batch["n_rollouts"][at])
    weights = batch["weights"][at]
    return (losses * weights).sum(), weights.sum()


def hard_cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """-log P(label)."""
    return functional.cross_entropy(logits, labels, reduction="none")


def soft_cross_entropy(logits: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """-(v log P(good) + (1 - v) log P(bad)), which is smallest at P(good) = v."""
    logs = functional.log_softmax(logits, dim=-1)
    return -(values * logs[:, 1] + (1 - values) * logs[:, 0])


def beta_binomial(logits: torch.Tensor, correct: torch.Tensor, rollouts: torch.Tensor) -> torch.Tensor:
    """-log P(`correct` of `rollouts`) if the step's success rate has a Beta(e^l1, e^l0) distribution.

    Its mean is softmax(l)_1, and e^l0 + e^l1 is the model's certainty. The logits are the logarithms of the parameters of a
    Dirichlet distribution, as in section 3 of Malinin & Gales 2018 (arXiv:1802.10501). The probability is Skellam's (1948,
    J. R. Stat. Soc. B 10, 257) in its product form,

        C(n, c)  prod_{i<c} (a + i)  prod_{j<n-c} (b + j)  /  prod_{k<n} (a + b + k),

    with n rollouts, c of them correct, a = e^l1 and b = e^l0. The logarithms of its factors are log(e^l + i): nothing overflows
    or cancels, and each has a slope of at most 1. For one rollout it is the hard cross-entropy. The number of rollouts may
    depend on their outcomes; that changes the probability by a factor that does not depend on the logits.
    """
    most = int(rollouts.max()) if len(rollouts) else 0
    steps = torch.arange(most, device=logits.device, dtype=logits.dtype)
    wrong = rollouts - correct
    rising_good = _log_rising(logits[:, 1], correct, steps)
    rising_bad = _log_rising(logits[:, 0], wrong, steps)
    rising_both = _log_rising(torch.logaddexp(logits[:, 0], logits[:, 1]), rollouts, steps)
    return rising_both - rising_good - rising_bad - _log_choose(rollouts, correct, logits.dtype)


def _log_rising(log_base: torch.Tensor, counts: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """log(a (a + 1) ... (a + n - 1)) for a = e^log_base and n = counts; 0 for n = 0."""
    factors = torch.logaddexp(log_base[:, None], steps.log())
    return (factors * (steps < counts[:, None])).sum(1)


def _log_choose(n: torch.Tensor, c: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    n, c = n.to(torch.float64), c.to(torch.float64)
    return (torch.lgamma(n + 1) - torch.lgamma(c + 1) - torch.lgamma(n - c + 1)).to(dtype)
