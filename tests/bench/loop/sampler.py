"""Draws from the tiny policy in this process, without an engine: many more tokens per second than a server of requests gives.

A batch holds prompts of equal length, so nothing is padded. What is drawn has the distribution that vLLM draws from with
`temperature=1`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file
from torch.nn import functional
from transformers import AutoConfig

from tests.tiny.policy import ASSET, MAX_TOKENS

ROWS = 1024
"""Texts that are drawn together, about."""
_GROWTH = 24
"""Tokens by which the cache of keys and values grows."""
_PLACES = 2
"""Times the context: texts that are filled up on the left stand further right."""
_STILL_DRAWN = 0.7
"""Rows are dropped from the batch when fewer than this share of it goes on."""

Ids = Sequence[int]
Sums = npt.NDArray[np.float64]
"""Before a token: the sums of the probabilities of the first 1, 2 and so on tokens of the vocabulary."""
_Cache = list[tuple[torch.Tensor, torch.Tensor]]


class Sampler:
    """The policy's weights in float32. `seed` decides what is drawn, on the same processor and with the same calls."""

    def __init__(self, seed: int, folder: Path = ASSET) -> None:
        config = AutoConfig.from_pretrained(folder)
        self._weights = {name: weight.float() for name, weight in load_file(folder / "model.safetensors").items()}
        self._layers = range(config.num_hidden_layers)
        self._heads = config.num_attention_heads
        self._epsilon = config.rms_norm_eps
        self.end: int = config.eos_token_id
        """The token that ends a text."""
        size = config.hidden_size // self._heads
        speeds = config.rope_parameters["rope_theta"] ** (-torch.arange(0, size, 2) / size)
        angles = torch.outer(torch.arange(_PLACES * config.max_position_embeddings), speeds).repeat(1, 2)
        self._cos, self._sin = angles.cos(), angles.sin()
        self._generator = torch.Generator().manual_seed(seed)
        self.drawn_tokens = 0

    def draw(self, prompts: Sequence[Ids], times: int) -> Iterator[tuple[int, list[list[int]]]]:
        """`times` completions of each prompt, in any order of prompts: its place and the tokens without the end. A completion
        of `MAX_TOKENS` tokens has no end."""
        by_length: dict[int, list[int]] = {}
        for place, prompt in enumerate(prompts):
            by_length.setdefault(len(prompt), []).append(place)
        together = max(1, ROWS // times)
        for _, places in sorted(by_length.items()):
            for start in range(0, len(places), together):
                chosen = places[start : start + together]
                with torch.inference_mode():
                    found = self._drawn([prompts[place] for place in chosen], times)
                for number, place in enumerate(chosen):
                    yield place, found[number * times : (number + 1) * times]

    def continued(
        self, prompts: Sequence[Ids], chances: torch.Tensor, limits: Sequence[int], ends: Sequence[int | None]
    ) -> list[tuple[list[int], list[Sums]]]:
        """One completion of each prompt, of any lengths, with the token that ends it, and `Sums` for each of its tokens.
        `chances`, shape (prompts, tokens): numbers from [0, 1) that decide the tokens; so a completion does not depend on the
        others but for rounding. `limits`: the longest length of each. `ends`: a token that ends it besides the policy's own
        end, or None."""
        with torch.inference_mode():
            return self._continued(prompts, chances, torch.tensor(limits), ends)

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        """Of the token after each of the given ones, shape (texts, length, vocabulary)."""
        return self._logits(self._passed(ids, 0, []))

    def _drawn(self, prompts: Sequence[Ids], times: int) -> list[list[int]]:
        cache: _Cache = []
        hidden = self._passed(torch.tensor(prompts), 0, cache)[:, -1:].repeat_interleave(times, 0)
        cache[:] = [(keys.repeat_interleave(times, 0), values.repeat_interleave(times, 0)) for keys, values in cache]
        rows = torch.arange(len(hidden))
        texts = torch.full((len(hidden), MAX_TOKENS), self.end)
        length = len(prompts[0])
        for position in range(MAX_TOKENS):
            chances = self._logits(hidden)[:, -1].softmax(-1)
            noise = torch.empty_like(chances).exponential_(generator=self._generator)
            tokens = (chances / noise).argmax(-1)
            texts[rows, position] = tokens
            self.drawn_tokens += len(rows)
            alive = tokens != self.end
            if not alive.any() or position + 1 == MAX_TOKENS:
                break
            if alive.float().mean() < _STILL_DRAWN:
                rows, tokens = rows[alive], tokens[alive]
                cache[:] = [(keys[alive], values[alive]) for keys, values in cache]
            hidden = self._passed(tokens[:, None], length + position, cache)
        return [_until(text, self.end) for text in texts.tolist()]

    def _continued(
        self, prompts: Sequence[Ids], chances: torch.Tensor, limits: torch.Tensor, ends: Sequence[int | None]
    ) -> list[tuple[list[int], list[Sums]]]:
        distinct = {prompt: place for place, prompt in enumerate(dict.fromkeys(map(tuple, prompts)))}
        length = max(map(len, distinct))
        # Filled up on the left. Only differences of positions matter to this model, so all may stand at the same place.
        pads = torch.tensor([length - len(prompt) for prompt in distinct])
        ids = torch.tensor([[self.end] * (length - len(prompt)) + list(prompt) for prompt in distinct])
        places = torch.arange(length + chances.shape[1])
        begun = pads[:, None] <= places
        causal = places[:length, None] >= places[:length]
        # Where nothing is begun yet, a token sees what it likes: without any it would be no number, and spoil the others.
        mask = causal & (begun[:, None, :length] | ~begun[:, :length, None])
        cache: _Cache = []
        hidden = self._passed(ids, 0, cache, mask[:, None])[:, -1:]
        of = torch.tensor([distinct[tuple(prompt)] for prompt in prompts])
        hidden, begun = hidden[of], begun[of]
        cache[:] = [(keys[of], values[of]) for keys, values in cache]
        stops = torch.tensor([self.end if end is None else end for end in ends])
        rows = torch.arange(len(prompts))
        found: list[tuple[list[int], list[Sums]]] = [([], []) for _ in prompts]
        for position in range(chances.shape[1]):
            sums = self._logits(hidden)[:, -1].double().softmax(-1).cumsum(-1)
            tokens = (sums < chances[rows, position, None] * sums[:, -1:]).sum(-1)
            for row, token, sums_of in zip(rows.tolist(), tokens.tolist(), sums.numpy(), strict=True):
                found[row][0].append(token)
                found[row][1].append(sums_of)
            self.drawn_tokens += len(rows)
            alive = (tokens != self.end) & (tokens != stops[rows]) & (limits[rows] > position + 1)
            if not alive.any():
                break
            if not alive.all():
                rows, tokens, begun = rows[alive], tokens[alive], begun[alive]
                cache[:] = [(keys[alive], values[alive]) for keys, values in cache]
            seen = begun[:, None, None, : length + position + 1]
            hidden = self._passed(tokens[:, None], length + position, cache, seen)
        return found

    def _passed(self, ids: torch.Tensor, begin: int, cache: _Cache, mask: torch.Tensor | None = None) -> torch.Tensor:
        """The last hidden states of tokens from position `begin` on; their keys and values enter the cache. `mask`: which
        tokens each one sees, shape (texts, 1, length, all tokens); None: those before it and itself."""
        until = begin + ids.shape[1]
        cos, sin = self._cos[begin:until], self._sin[begin:until]
        hidden = self._weights["model.embed_tokens.weight"][ids]
        for layer in self._layers:
            name = f"model.layers.{layer}"
            normed = self._normed(hidden, f"{name}.input_layernorm")
            query, keys, values = (self._split(normed, f"{name}.self_attn.{part}_proj") for part in "qkv")
            query, keys = (each * cos + _half_turned(each) * sin for each in (query, keys))
            if len(cache) == layer:
                cache.append((_grown(keys[:, :, :0], begin), _grown(values[:, :, :0], begin)))
            held = cache[layer]
            if held[0].shape[2] < until:
                cache[layer] = held = (
                    _grown(held[0], until - held[0].shape[2]),
                    _grown(held[1], until - held[1].shape[2]),
                )
            for whole, new in zip(held, (keys, values), strict=True):
                whole[:, :, begin:until] = new
            seen = functional.scaled_dot_product_attention(
                query,
                held[0][:, :, :until],
                held[1][:, :, :until],
                attn_mask=mask,
                is_causal=mask is None and ids.shape[1] > 1,
            )
            hidden = hidden + seen.transpose(1, 2).flatten(2) @ self._weights[f"{name}.self_attn.o_proj.weight"].T
            normed = self._normed(hidden, f"{name}.post_attention_layernorm")
            gate, up = (normed @ self._weights[f"{name}.mlp.{part}_proj.weight"].T for part in ("gate", "up"))
            hidden = hidden + (functional.silu(gate) * up) @ self._weights[f"{name}.mlp.down_proj.weight"].T
        return hidden

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return self._normed(hidden, "model.norm") @ self._weights["model.embed_tokens.weight"].T

    def _normed(self, hidden: torch.Tensor, name: str) -> torch.Tensor:
        return functional.rms_norm(hidden, hidden.shape[-1:], self._weights[f"{name}.weight"], self._epsilon)

    def _split(self, hidden: torch.Tensor, name: str) -> torch.Tensor:
        return (hidden @ self._weights[f"{name}.weight"].T).unflatten(-1, (self._heads, -1)).transpose(1, 2)


def _half_turned(states: torch.Tensor) -> torch.Tensor:
    first, second = states.chunk(2, -1)
    return torch.cat([-second, first], -1)


def _grown(states: torch.Tensor, more: int) -> torch.Tensor:
    """With capacity for at least `more` tokens."""
    shape = (*states.shape[:2], states.shape[2] + max(more, _GROWTH), states.shape[3])
    grown = states.new_empty(shape)
    grown[:, :, : states.shape[2]] = states
    return grown


def _until(text: list[int], end: int) -> list[int]:
    return text[: text.index(end)] if end in text else text
