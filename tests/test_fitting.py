"""Over how many devices models go."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.architectures import architecture_of
from pipeline.engines.roofline import WORKSPACE_BYTES, divides, kv_bytes, least_devices, weight_bytes
from tests import models

CONFIGS = (models.QWEN_05B, models.QWEN_7B, models.QWEN_72B, models.LLAMA_8B, models.LLAMA_405B, models.MIXTRAL_8X7B)


@pytest.mark.parametrize(
    ("config", "gigabytes", "devices"),
    [
        (models.QWEN_15B, 48, 1),
        (models.QWEN_7B, 40, 1),
        (models.LLAMA_8B, 48, 1),
        (models.LLAMA_8B, 80, 1),
        (models.MIXTRAL_8X7B, 80, 2),
        (models.MIXTRAL_8X7B, 141, 1),
        (models.QWEN_72B, 80, 4),
        (models.QWEN_72B, 141, 2),
        (models.LLAMA_405B, 80, None),
        (models.LLAMA_405B, 141, 8),
    ],
)
def test_as_few_as_hold_the_model(config: dict[str, Any], gigabytes: float, devices: int | None) -> None:
    assert least_devices(architecture_of(config), memory=gigabytes * 1e9, share=0.9, at_most=8) == devices


def test_half_the_bytes_take_half_the_devices() -> None:
    in_fp8 = architecture_of(models.QWEN_72B, quantization="fp8")
    assert least_devices(in_fp8, memory=80e9, share=0.9, at_most=8) == 2


def test_a_long_context_and_many_sequences_want_space() -> None:
    """A sequence of 131,072 tokens takes 17 GB of Llama's cache, which vLLM must be able to hold."""
    eight = architecture_of(models.LLAMA_8B)
    assert least_devices(eight, memory=40e9, share=0.8, at_most=8) == 2
    assert least_devices(eight, memory=40e9, share=0.8, at_most=8, context=8192) == 1
    assert least_devices(eight, memory=40e9, share=0.8, at_most=8, context=8192, sequences=1024) == 2


def test_heads_are_dealt_out_whole() -> None:
    assert [divides(architecture_of(models.QWEN_7B), devices) for devices in (1, 2, 4, 8)] == [True, True, True, False]
    assert [divides(architecture_of(models.SMOLLM2_135M), devices) for devices in (1, 2, 3)] == [True, False, True]


@given(
    st.sampled_from(CONFIGS), st.floats(1e9, 300e9), st.floats(0.1, 1), st.integers(1, 16), st.integers(1, 4096),
    st.integers(16, 131_072),
)  # fmt: skip
def test_what_is_chosen_holds_the_model_and_larger_devices_need_no_more(
    config: dict[str, Any], memory: float, share: float, at_most: int, sequences: int, context: int
) -> None:
    architecture = architecture_of(config)

    def free(devices: int) -> float:
        """Bytes of all devices for the cache, had every one a part of it."""
        return devices * (share * memory - WORKSPACE_BYTES) - weight_bytes(architecture)

    chosen = least_devices(
        architecture, memory=memory, share=share, at_most=at_most, sequences=sequences, context=context
    )
    larger = least_devices(
        architecture, memory=2 * memory, share=share, at_most=at_most, sequences=sequences, context=context
    )
    if chosen is None:
        return
    assert chosen <= at_most
    assert divides(architecture, chosen)
    assert free(chosen) >= kv_bytes(architecture, context)
    assert larger is not None
    assert larger <= chosen
