"""Samples many completions of one prompt with the weights of a Llama: those that are equal so far are continued as one.

The completions have the distribution of independent draws at temperature 1, for the next tokens of equal texts are one
multinomial draw. A model that seldom errs writes few different texts, so 2,000 completions cost what some hundred do.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import DynamicCache, LlamaForCausalLM

from tests.tiny.compared import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The tokens of a completion, its end among them, and whether it has one. Without end it was cut."""

    tokens: tuple[int, ...]
    ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """`end` is the token at which a completion ends."""

    model: LlamaForCausalLM
    end: int
    rng: np.random.Generator

    def sampled(self, prompt: Sequence[int], count: int, max_tokens: int) -> Counter[Drawn]:
        """`count` completions, as different ones with their numbers."""
        found: Counter[Drawn] = Counter()
        texts: list[tuple[int, ...]] = [()]
        counts: Ints = np.array([count])
        ids, cache = torch.tensor([list(prompt)]), DynamicCache()
        with torch.inference_mode():
            for length in range(1, max_tokens + 1):
                logits = self.model(input_ids=ids, past_key_values=cache, logits_to_keep=1).logits[:, -1]
                drawn = self.rng.multinomial(counts, logits.double().softmax(-1).numpy())
                rows, tokens = np.nonzero(drawn)
                counts = drawn[rows, tokens]
                texts = [(*texts[row], int(token)) for row, token in zip(rows, tokens, strict=True)]
                ended = tokens == self.end
                for at in np.flatnonzero(ended | (length == max_tokens)):
                    found[Drawn(tokens=texts[at], ended=bool(ended[at]))] += int(counts[at])
                going = np.flatnonzero(~ended)
                if length == max_tokens or not len(going):
                    break
                counts, texts = counts[going], [texts[at] for at in going]
                if not np.array_equal(rows[going], np.arange(len(ids))):
                    cache.batch_select_indices(torch.from_numpy(rows[going]))
                ids = torch.from_numpy(tokens[going])[:, None]
        return found
