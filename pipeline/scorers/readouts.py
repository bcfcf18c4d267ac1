"""How a score is read from a model at one token of a step. Pure.

A *read-out* says what the model computes there and which probability of it is the score:

- `Classes`: a head with classes at every token; the softmax over the classes. Formula: e^(l_good) / sum over classes of e^(l).
- `TokenPair`: the next-token logits of a causal language model; the softmax over two tokens alone.
- `Value`: a head with one number; its sigmoid.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """A head with `count` classes, of which `good` is the index of the class of good steps."""

    count: int = 2
    good: int = 1

    def score(self, logits: Sequence[float]) -> float:
        """P(good) from the logits of all classes."""
        top = max(logits)
        shares = [math.exp(logit - top) for logit in logits]
        return shares[self.good] / math.fsum(shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPair:
    """Token ids of the word for a good and for a bad step."""

    good: int
    bad: int

    def score(self, logits: Sequence[float]) -> float:
        """P(good) from the logits, or log-probabilities, of the good and the bad token, in this order."""
        good, bad = logits
        return sigmoid(good - bad)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A head with one number, of which the sigmoid is the score."""

    def score(self, logits: Sequence[float]) -> float:
        (value,) = logits
        return sigmoid(value)


Readout = Classes | TokenPair | Value


def sigmoid(value: float) -> float:
    """1 / (1 + e^-value), without overflow."""
    if value >= 0:
        return 1.0 / (1.0 + math.exp(-value))
    share = math.exp(value)
    return share / (1.0 + share)
