"""Completions that are continued together have the distribution of those that are drawn one by one."""

from itertools import product

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from tests.tiny.policy import LONG
from tests.tiny.sampler import Drawn, Sampler

END, WORDS, MAX_TOKENS, COUNT = 0, 3, 3, 20_000
PROMPT = [1, 2, 1]
LENGTH = 12
"""Tokens of a completion of the long policy: more than a line."""


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=16,
        initializer_range=1.0,
    )
    return LlamaForCausalLM(config).eval()


def probability(model: LlamaForCausalLM, tokens: tuple[int, ...]) -> float:
    """Of these tokens, from one pass over all of them."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*PROMPT, *tokens]])).logits[0, len(PROMPT) - 1 : -1]
    of_each = torch.softmax(logits.double(), dim=-1)[range(len(tokens)), list(tokens)]
    return float(of_each.prod())


def completions() -> list[Drawn]:
    ended = [(*text, END) for length in range(MAX_TOKENS) for text in product(range(1, WORDS), repeat=length)]
    cut = list(product(range(1, WORDS), repeat=MAX_TOKENS))
    return [Drawn(tokens=tokens, ended=tokens[-1] == END) for tokens in (*ended, *cut)]


def test_every_completion_is_drawn_as_often_as_its_probability_says(model: LlamaForCausalLM) -> None:
    sampler = Sampler(model=model, end=END, rng=np.random.default_rng(6))
    found = sampler.sampled(PROMPT, COUNT, MAX_TOKENS)
    assert set(found) <= set(completions())
    assert found.total() == COUNT
    expected = {drawn: COUNT * probability(model, drawn.tokens) for drawn in completions()}
    assert sum(expected.values()) == pytest.approx(COUNT)
    likely = [drawn for drawn in expected if expected[drawn] > 5]
    assert len(likely) > 5
    for drawn in likely:
        assert abs(found[drawn] - expected[drawn]) < 5 * expected[drawn] ** 0.5


@pytest.mark.nightly
def test_the_long_policy_s_completions_have_its_own_probabilities() -> None:
    """The first token after a prompt in whose middle the model is unsure, and the tokens after the most likely ones."""
    model = LlamaForCausalLM.from_pretrained(LONG.asset, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(LONG.asset)
    prompt = tokenizer.encode("7a*5b+8c*3d-9e*4f+2g-1\na*5=35\nb+8=43\n")
    sampler = Sampler(model=model, end=model.config.eos_token_id, rng=np.random.default_rng(7))
    found = sampler.sampled(prompt, COUNT, LENGTH)
    likely = [drawn for drawn, count in found.items() if count > COUNT / 200]
    assert len(likely) > 3
    for drawn in likely:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([[*prompt, *drawn.tokens]])).logits[0, len(prompt) - 1 : -1]
        chance = float(torch.softmax(logits.double(), -1)[range(len(drawn.tokens)), list(drawn.tokens)].prod())
        assert abs(found[drawn] - COUNT * chance) < 5 * (COUNT * chance) ** 0.5
