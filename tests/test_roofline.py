"""The bounds beside figures worked out by hand from published sizes, and over how many devices models go."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.hardware import KNOWN, Architecture, Device, Hardware, device_named
from pipeline.core.progress import EngineWork
from pipeline.engines.architectures import architecture_of
from pipeline.engines.roofline import (
    WORKSPACE_BYTES,
    Effort,
    decode_bound,
    decode_seconds,
    divides,
    kv_bytes,
    least_devices,
    prefill_seconds,
    throughput,
    weight_bytes,
)
from tests import models

ARCHITECTURES = [
    architecture_of(config)
    for config in (models.QWEN_15B, models.QWEN_7B, models.GEMMA2_9B, models.MIXTRAL_8X7B, models.QWEN3_30B_A3B)
]
architectures = st.sampled_from(ARCHITECTURES)
batches = st.floats(1, 4096)
contexts = st.floats(1, 100_000)


def named(name: str) -> Device:
    found = device_named(name)
    assert found is not None
    return found


devices = st.sampled_from([named(name) for name in KNOWN])


@pytest.mark.parametrize(
    ("config", "device", "batch", "kilotokens"),
    [
        (models.QWEN_05B, "H100 SXM", 256, 298),
        (models.QWEN_05B, "H100 SXM", 1024, 402),
        (models.QWEN_05B, "H200 SXM", 1024, 576),
        (models.QWEN_15B, "H100 SXM", 256, 114),
        (models.QWEN_15B, "H100 SXM", 1024, 166),
        (models.QWEN_15B, "H200 SXM", 1024, 237),
        (models.QWEN_7B, "H100 SXM", 256, 37),
        (models.QWEN_7B, "H100 SXM", 1024, 69),
        (models.QWEN_7B, "H200 SXM", 1024, 70),
        (models.LLAMA_8B, "H100 SXM", 256, 24),
        (models.LLAMA_8B, "H100 SXM", 699, 33),
        (models.QWEN3_8B, "H100 SXM", 256, 23),
        (models.QWEN3_8B, "H100 SXM", 620, 30),
    ],
)
def test_bounds_at_600_tokens_of_context(config: dict[str, Any], device: str, batch: float, kilotokens: float) -> None:
    bound = decode_bound(architecture_of(config), named(device), batch=batch, context=600)
    assert bound / 1000 == pytest.approx(kilotokens, abs=0.7)


def test_a_pass_reads_weights_and_cache_or_multiplies() -> None:
    """Qwen2.5-7B on an H100: reading takes 14.73 ms, of which the cache has 10.52, and arithmetic 14.64."""
    seven, h100 = architecture_of(models.QWEN_7B), named("H100 SXM")
    assert decode_seconds(seven, h100, batch=1024, context=600) == pytest.approx(14.73e-3, rel=1e-3)
    assert decode_seconds(seven, h100, batch=1024, context=1) == pytest.approx(14.64e-3, rel=1e-3)


def test_a_token_takes_two_vectors_per_layer_in_the_cache() -> None:
    sizes = {name: kv_bytes(architecture_of(getattr(models, name)), 1) for name in ("QWEN_05B", "QWEN_15B", "QWEN_7B")}
    assert sizes == {"QWEN_05B": 12 * 1024, "QWEN_15B": 28 * 1024, "QWEN_7B": 56 * 1024}
    assert kv_bytes(architecture_of(models.LLAMA_8B), 1) == 128 * 1024
    assert kv_bytes(architecture_of(models.QWEN3_8B), 1) == 144 * 1024


def test_a_window_caps_what_is_read() -> None:
    every, half = architecture_of(models.MISTRAL_7B), architecture_of(models.GEMMA2_9B)
    assert kv_bytes(every, 100_000) == kv_bytes(every, 4096)
    assert kv_bytes(half, 12_288) == 2 * kv_bytes(half, 4096)


def test_a_prompt_costs_its_tokens() -> None:
    """6.525e9 parameters without embeddings."""
    seven, h100 = architecture_of(models.QWEN_7B), named("H100 SXM")
    assert prefill_seconds(seven, h100, tokens=1e6) == pytest.approx(2 * 6.525e15 / 989e12, rel=1e-3)


@given(architectures, devices, batches, contexts, st.floats(1, 2), st.integers(1, 8))
def test_more_work_takes_longer_and_larger_batches_are_faster(
    architecture: Architecture, device: Device, batch: float, context: float, factor: float, parts: int
) -> None:
    def seconds(batch: float, context: float) -> float:
        return decode_seconds(architecture, device, batch=batch, context=context)

    once = seconds(batch, context)
    assert 0 < once <= seconds(batch * factor, context) * (1 + 1e-9)
    assert once <= seconds(batch, context * factor) * (1 + 1e-9)
    assert seconds(batch * factor, context) <= factor * once * (1 + 1e-9), (
        "one pass for many is no slower than many for one"
    )
    assert decode_seconds(architecture, device, batch=batch, context=context, devices=parts) == pytest.approx(
        once / parts
    )


@given(st.lists(st.tuples(batches, contexts), min_size=1, max_size=8), st.sampled_from(ARCHITECTURES[:2]), devices)
def test_the_bound_at_the_means_is_never_below_that_of_the_passes(
    passes: list[tuple[float, float]], architecture: Architecture, device: Device
) -> None:
    tokens = sum(batch for batch, _ in passes)
    context = sum(batch * context for batch, context in passes) / tokens
    needed = sum(decode_seconds(architecture, device, batch=batch, context=context) for batch, context in passes)
    at_means = len(passes) * decode_seconds(architecture, device, batch=tokens / len(passes), context=context)
    assert at_means <= needed * (1 + 1e-9)


WORK = EngineWork(
    generated=1_000_000, steps=4_000, finished=500_000, attended=300_000_000, prompt=400_000, prefilled=104_000,
    unfilled_seconds=0.4,
)  # fmt: skip
SEVEN = Hardware(architecture=architecture_of(models.QWEN_7B), device=named("H100 SXM"))


def effort(hardware: Hardware = SEVEN, work: EngineWork = WORK, seconds: float = 40.0, engines: int = 1) -> Effort:
    return Effort(
        hardware=hardware,
        work=work,
        wall_seconds=seconds,
        engine_seconds=seconds * engines,
        tail_seconds=0.1,
        distinct_prompt=100_000,
        grading_seconds=2.0,
    )


def test_a_run_is_held_against_the_bound_at_its_own_batch_and_context() -> None:
    found = throughput(effort())
    assert found is not None
    assert (found.batch, found.context, found.tokens_per_second, found.engines) == (250, 600, 25_000, 1)
    assert SEVEN.architecture is not None
    assert SEVEN.device is not None
    bound = decode_bound(SEVEN.architecture, SEVEN.device, batch=250, context=600)
    assert found.share == pytest.approx(25_000 / bound)
    assert found.prefill_share == pytest.approx(2 * 6.525e9 * 104_000 / 989e12 / 40, rel=1e-3)
    assert (found.prefill_ratio, found.idle, found.tail, found.grading) == (1.04, 0.01, 0.0025, 0.05)


@given(st.integers(1, 600), st.integers(1, 8))
def test_engines_side_by_side_have_the_share_of_one(engines: int, parts: int) -> None:
    """Each of them does the same work, on devices of its own."""
    hardware = Hardware(architecture=SEVEN.architecture, device=SEVEN.device, devices=parts)
    together = sum([WORK] * engines, EngineWork())
    one, all_of_them = throughput(effort(hardware)), throughput(effort(hardware, together, engines=engines))
    assert one is not None
    assert all_of_them is not None
    assert all_of_them.share == pytest.approx(one.share)
    assert all_of_them.idle == pytest.approx(one.idle)
    assert all_of_them.tokens_per_second == pytest.approx(engines * one.tokens_per_second)
    assert all_of_them.engines == pytest.approx(engines)


def test_what_is_not_known_leaves_the_bound_out() -> None:
    for hardware in (
        Hardware(architecture=SEVEN.architecture, unknown="no such device"),
        Hardware(device=SEVEN.device, unknown="no such model"),
    ):
        found = throughput(effort(hardware))
        assert found is not None
        assert (found.share, found.prefill_share, found.tokens_per_second) == (None, None, 25_000)


def test_engines_that_made_nothing_have_no_speed() -> None:
    assert throughput(effort(work=EngineWork())) is None
    assert throughput(effort(seconds=0.0)) is None


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
