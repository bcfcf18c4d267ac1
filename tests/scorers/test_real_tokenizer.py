"""With the tokenizer and the chat template of a published model, chats have the tokens that the tokenizer gives for their whole
text."""

from typing import Any

import pytest
from hypothesis import given
from transformers import AutoTokenizer

from pipeline.engines.embedded import embedded_model
from pipeline.scorers.settings import FoverConfig, QwenConfig, RlhflowConfig
from tests.scorers import reference
from tests.scorers.loaded import reading
from tests.scorers.published import PROBLEM, STEPS
from tests.strategies import texts

TAG = "<jupyter_code>"
"""A special token of SmolLM2, which has no `<extra_0>`."""
LONG = 1_000_000


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(embedded_model())


@pytest.fixture(scope="module")
def readings(tokenizer: Any) -> dict[str, Any]:
    settings = (QwenConfig(model="m", tag=TAG), RlhflowConfig(model="m"), FoverConfig(model="m"))
    return {each.kind: reading(each, tokenizer) for each in settings}


@given(problem=texts, first=texts, second=texts)
def test_chats_have_the_tokens_of_their_whole_text(
    problem: str, first: str, second: str, tokenizer: Any, readings: dict[str, Any]
) -> None:
    steps = [first, second]
    messages = [
        {"role": "system", "content": reference.QWEN_SYSTEM},
        {"role": "user", "content": problem},
        {"role": "assistant", "content": f"{first}{TAG}{second}{TAG}"},
    ]
    whole = tokenizer.encode(tokenizer.apply_chat_template(messages, tokenize=False))
    assert list(readings["qwen"].encode(problem, steps, LONG).ids) == whole
    assert list(readings["rlhflow"].encode(problem, steps, LONG).ids) == reference.rlhflow_ids(
        tokenizer, problem, steps
    )
    assert list(readings["fover"].encode(problem, steps, LONG).ids) == reference.fover_ids(tokenizer, problem, steps)


def test_steps_are_read_before_their_answers(tokenizer: Any, readings: dict[str, Any]) -> None:
    for kind, answer in (("rlhflow", "+"), ("fover", "correct")):
        found = readings[kind].encode(PROBLEM, STEPS, LONG)
        assert [tokenizer.decode([found.ids[end + 1]]) for end in found.ends] == [answer] * 3
        assert readings[kind].readout.good == tokenizer.encode(answer)[0]
