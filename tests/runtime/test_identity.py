"""Which settings are part of the identity of a run, and which only change how it is done."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.config.choices import PromptStyle, TimeoutIs, UnreadableIs
from pipeline.config.label import LabelConfig, PromptConfig, SamplingConfig
from pipeline.engines.settings import OpenAiConfig
from pipeline.runtime.state import identity
from tests.settings import grader_settings, policy_settings


def hf(**own: Any) -> LabelConfig:
    return LabelConfig(policy=policy_settings("hf", model="m", prompt=PromptConfig(style=PromptStyle.plain), **own))


def served(model: str = "m", tokenizer: str | None = None, **own: Any) -> LabelConfig:
    servers = OpenAiConfig(**{"urls": ["http://a/v1"], **own})
    return LabelConfig(policy=policy_settings("openai", model=model, tokenizer=tokenizer, openai=servers))


def graded(kind: str, **own: Any) -> LabelConfig:
    return LabelConfig(grader=grader_settings(kind, **own))


def ending(at_answer: bool) -> LabelConfig:
    return replace(hf(), sampling=SamplingConfig(stop_at_answer=at_answer))


@pytest.mark.parametrize(
    ("usual", "changed"),
    [
        (hf(), hf(max_num_seqs=3)),
        (hf(), hf(max_num_batched_tokens=3)),
        (hf(), hf(memory_share=0.3)),
        (hf(), hf(tensor_parallel=3)),
        (hf(), hf(load_format="gguf")),
        (served(), served(urls=["http://b/v1", "http://c/v1"])),
        (served(), served(connections=3, choices=2, retries=1)),
        (served(), served(timeout_seconds=3.0, patience_seconds=3.0)),
        (served(), served(api_key_env="TEAM_KEY")),
        (graded("math"), graded("math", memory_mib=4096)),
        (graded("code"), graded("code", processes=7)),
        (hf(), ending(at_answer=True)),
    ],
)
def test_how_and_where_it_is_done_is_no_part_of_a_run(usual: LabelConfig, changed: LabelConfig) -> None:
    assert identity(changed, "input") == identity(usual, "input")


@pytest.mark.parametrize(
    ("usual", "changed"),
    [
        (served(), served("other")),
        (served(), served(tokenizer="t")),
        (served(), served(extensions=False)),
        (graded("code"), graded("code", memory_mib=4096)),
        (graded("code"), graded("code", cpu_seconds=9.0)),
        (graded("code"), graded("code", suite_seconds=9.0)),
        (graded("code"), graded("math")),
        (graded("code"), graded("code", timeout_is=TimeoutIs.ungraded)),
        (graded("math"), graded("math", timeout_is=TimeoutIs.wrong)),
        (graded("math"), graded("math", unreadable_is=UnreadableIs.wrong)),
        (hf(), ending(at_answer=False)),
    ],
)
def test_what_changes_the_rollouts_makes_another_run(usual: LabelConfig, changed: LabelConfig) -> None:
    assert identity(changed, "input") != identity(usual, "input")


@pytest.mark.parametrize(
    "policy",
    [
        {"quantization": "fp8"},
        {"load_format": "dummy"},
        {"kv_cache_dtype": "fp8"},
        {"speculative_tokens": 3},
        {"speculative_tokens": 3, "speculative_model": "small"},
    ],
)
def test_what_changes_the_policy_is_recorded_by_its_name(policy: dict[str, object]) -> None:
    named = {f"policy.{key}": value for key, value in policy.items()}
    assert identity(hf(**policy), "input") == identity(hf(), "input") | named
