"""Samples from the tiny policy in this process, many texts at a time: many more tokens per second than a server of requests."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from transformers import DynamicCache, LlamaForCausalLM

from tests.tiny.policy import ASSET

Sums = npt.NDArray[np.float64]
"""Before a token: the sums of the probabilities of the first 1, 2 and so on tokens of the vocabulary."""


class Sampler:
    """The policy's weights in float32."""

    def __init__(self) -> None:
        self._model = LlamaForCausalLM.from_pretrained(ASSET, dtype=torch.float32).eval()
        self.end = int(self._model.config.eos_token_id)
        """The token that ends a text."""

    def continued(
        self, prompts: Sequence[Sequence[int]], chances: torch.Tensor, limits: Sequence[int], ends: Sequence[int | None]
    ) -> list[tuple[list[int], list[Sums]]]:
        """One completion of each prompt, of any lengths, with the token that ends it, and `Sums` for each of its tokens.
        `chances`, shape (prompts, tokens): numbers from [0, 1) that decide the tokens; so a completion does not depend on the
        others but for rounding. `limits`: the longest length of each. `ends`: a token that ends it besides the policy's own
        end, or None."""
        with torch.inference_mode():
            return self._continued(prompts, chances, limits, ends)

    def _continued(
        self, prompts: Sequence[Sequence[int]], chances: torch.Tensor, limits: Sequence[int], ends: Sequence[int | None]
    ) -> list[tuple[list[int], list[Sums]]]:
        length = max(map(len, prompts))
        fill = [length - len(prompt) for prompt in prompts]
        ids = torch.tensor([[self.end] * left + list(prompt) for left, prompt in zip(fill, prompts, strict=True)])
        seen = (torch.arange(length) >= torch.tensor(fill)[:, None]).long()
        positions = (seen.cumsum(-1) - 1).clamp(min=0)
        stops = torch.tensor([self.end if end is None else end for end in ends])
        most, rows, cache = torch.tensor(limits), torch.arange(len(prompts)), DynamicCache()
        found: list[tuple[list[int], list[Sums]]] = [([], []) for _ in prompts]
        for place in range(chances.shape[1]):
            logits = self._model(
                ids, attention_mask=seen, position_ids=positions, past_key_values=cache, logits_to_keep=1
            ).logits
            sums = logits[:, -1].double().softmax(-1).cumsum(-1)
            tokens = (sums < chances[rows, place, None] * sums[:, -1:]).sum(-1)
            for row, token, sums_of in zip(rows.tolist(), tokens.tolist(), sums.numpy(), strict=True):
                found[row][0].append(token)
                found[row][1].append(sums_of)
            alive = (tokens != self.end) & (tokens != stops[rows]) & (most[rows] > place + 1)
            if not alive.any():
                break
            if not alive.all():
                rows, tokens, seen = rows[alive], tokens[alive], seen[alive]
                cache.batch_select_indices(alive.nonzero()[:, 0])
            seen = torch.cat([seen, torch.ones(len(rows), 1, dtype=torch.long)], 1)
            ids, positions = tokens[:, None], seen.sum(-1, keepdim=True) - 1
        return found
