"""Which engine settings are part of the identity of a run, and which only change how the engine runs."""

import pytest

from pipeline.config.choices import PromptStyle
from pipeline.config.label import LabelConfig, PromptConfig, SamplingConfig
from pipeline.runtime.state import identity
from tests.settings import policy_settings


def identity_of(policy: dict[str, object], **sampling: object) -> dict[str, object]:
    prompt = PromptConfig(style=PromptStyle.plain)
    return identity(
        LabelConfig(
            policy=policy_settings("hf", model="m", prompt=prompt, **policy),
            sampling=SamplingConfig(**sampling),  # type: ignore[arg-type]
        ),
        "input",
    )


@pytest.mark.parametrize(
    "policy",
    [
        {"max_num_seqs": 3},
        {"max_num_batched_tokens": 3},
        {"memory_share": 0.3},
        {"tensor_parallel": 3},
        {"load_format": "gguf"},
    ],
)
def test_how_the_model_is_held_is_no_part_of_a_run(policy: dict[str, object]) -> None:
    assert identity_of(policy) == identity_of({})


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
def test_what_changes_the_policy_makes_another_run(policy: dict[str, object]) -> None:
    assert identity_of(policy) == identity_of({}) | {f"policy.{key}": value for key, value in policy.items()}


def test_where_completions_end_counts_however_it_was_settled() -> None:
    assert identity_of({}) == identity_of({}, stop_at_answer=True)
    off = identity_of({}, stop_at_answer=False)
    assert off != identity_of({})
    assert off["sampling.stop_at_answer"] is False
