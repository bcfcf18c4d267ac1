"""Samples many completions of one prompt with the weights of a Llama: those that are equal so far are continued as one.

The completions have the distribution of independent draws at temperature 1, for the next tokens of equal texts are one
multinomial draw. A model that seldom errs writes few different texts, so 2,000 completions cost what some hundred do. All texts
read the same keys and values of the prompt. For weights of float32 on a CPU.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import DynamicCache, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaAttention, apply_rotary_pos_emb

from tests.tiny.compared import Floats, Ints

FULL = 0.7
"""Share of the slots with a text, below which texts are moved together."""


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
        with torch.inference_mode():
            reader = _Reader(self.model, prompt, count, max_tokens)
            probabilities = reader.first
            for length in range(1, max_tokens + 1):
                drawn = self.rng.multinomial(counts, probabilities)
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
                probabilities = reader.next(rows[going], tokens[going])
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """Keys and values of a layer: `prompt`, heads x length x size, and `texts`, slots x heads x length x size."""

    prompt: tuple[torch.Tensor, torch.Tensor]
    texts: tuple[torch.Tensor, torch.Tensor]

    def copy(self, source: torch.Tensor, target: torch.Tensor, length: int) -> None:
        for kept in self.texts:
            kept[target, :, :length] = kept[source, :, :length]


class _Reader:
    """The probabilities of the next token, texts x tokens: `first` after the prompt.

    A text has a slot, which its first continuation keeps; only others are copied. Slots without a text are computed too, so all
    texts are moved together where few slots have one.
    """

    def __init__(self, model: LlamaForCausalLM, prompt: Sequence[int], count: int, max_tokens: int) -> None:
        self._model = model
        self._asked, self._length = len(prompt), 0
        self._slots: Ints = np.zeros(1, dtype=int)
        self._used = 1
        cache = DynamicCache(config=model.config)
        logits = model(input_ids=torch.tensor([list(prompt)]), past_key_values=cache).logits[:, -1]
        self._kept = [_kept(layer.keys[0], layer.values[0], count, max_tokens) for layer in cache.layers]
        self.first = _probabilities(logits)

    def next(self, rows: Ints, tokens: Ints) -> Floats:
        """After texts that continue those in `rows` of the call before by these tokens. `rows` ascend."""
        self._take_slots(rows)
        given = np.zeros(self._used, dtype=int)
        given[self._slots] = tokens
        inner = self._model.model
        state = inner.embed_tokens(torch.from_numpy(given))[:, None]
        turned = inner.rotary_emb(state, torch.tensor([[self._asked + self._length]]))
        for layer, kept in zip(inner.layers, self._kept, strict=True):
            state = state + _attended(layer.self_attn, kept, self._length, layer.input_layernorm(state), turned)
            state = state + layer.mlp(layer.post_attention_layernorm(state))
        self._length += 1
        logits = self._model.lm_head(inner.norm(state))[:, -1]
        return _probabilities(logits[torch.from_numpy(self._slots)])

    def _take_slots(self, rows: Ints) -> None:
        before = self._slots[rows]
        if len(rows) < FULL * self._used:
            self._slots = moved = np.arange(len(rows))
        else:
            moved = np.flatnonzero(np.diff(rows, prepend=-1) == 0)
            free = np.setdiff1d(np.arange(self._used + len(moved)), before)
            self._slots = before.copy()
            self._slots[moved] = free[: len(moved)]
        source, target = torch.from_numpy(before[moved]), torch.from_numpy(self._slots[moved])
        for kept in self._kept:
            kept.copy(source, target, self._length)
        self._used = int(self._slots.max()) + 1


def _kept(keys: torch.Tensor, values: torch.Tensor, count: int, max_tokens: int) -> _Kept:
    heads, _, size = keys.shape
    texts = torch.empty(count, heads, max_tokens, size), torch.empty(count, heads, max_tokens, size)
    return _Kept(prompt=(keys, values), texts=texts)


def _attended(
    layer: LlamaAttention, kept: _Kept, length: int, state: torch.Tensor, turned: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """What a layer reads from the prompt and from each text, which is `length` tokens long before this one."""
    query, key, value = (
        project(state).view(len(state), 1, -1, layer.head_dim).transpose(1, 2)
        for project in (layer.q_proj, layer.k_proj, layer.v_proj)
    )
    query, key = apply_rotary_pos_emb(query, key, *turned)
    for texts, new in zip(kept.texts, (key, value), strict=True):
        texts[: len(state), :, length] = new[:, :, 0]
    keys, values = (texts[: len(state), :, : length + 1] for texts in kept.texts)
    prompt_keys, prompt_values = kept.prompt
    query = query * layer.scaling
    together = query[:, :, 0].transpose(0, 1)  # heads x texts x size
    of_prompt = (together @ prompt_keys.transpose(1, 2)).transpose(0, 1)[:, :, None]
    of_text = query @ keys.transpose(2, 3)
    weights = torch.softmax(torch.cat([of_prompt, of_text], dim=-1), dim=-1)
    prompt_weights, text_weights = weights.split([of_prompt.shape[-1], of_text.shape[-1]], dim=-1)
    read = (prompt_weights[:, :, 0].transpose(0, 1) @ prompt_values).transpose(0, 1)[:, :, None]
    read = read + text_weights @ values
    mixed: torch.Tensor = layer.o_proj(read.transpose(1, 2).reshape(len(state), 1, -1))
    return mixed


def _probabilities(logits: torch.Tensor) -> Floats:
    return np.asarray(torch.softmax(logits.double(), dim=-1).numpy())
