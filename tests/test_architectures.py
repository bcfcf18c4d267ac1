"""Sizes out of configs beside the stated numbers of parameters, and devices by the names that NVML, Ray and users use."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.hardware import KNOWN, Architecture, device_named, least_memory
from pipeline.engines.architectures import UnknownArchitecture, architecture_of
from pipeline.engines.roofline import parameters, weight_bytes
from tests import models


@pytest.mark.parametrize(
    ("config", "stated"),
    [
        (models.QWEN_05B, 494_032_768),
        (models.QWEN_15B, 1_543_714_304),
        (models.QWEN_7B, 7_615_616_512),
        (models.QWEN_72B, 72_706_203_648),
        (models.QWEN3_8B, 8_190_735_360),
        (models.LLAMA_8B, 8_030_261_248),
        (models.MISTRAL_7B, 7_241_732_096),
        (models.GEMMA2_9B, 9_241_705_984),
        (models.SMOLLM2_135M, 134_515_008),
        (models.MIXTRAL_8X7B, 46_702_792_704),
        (models.QWEN3_30B_A3B, 30_532_122_624),
    ],
)
def test_parameters_are_those_that_are_stated(config: dict[str, Any], stated: int) -> None:
    assert parameters(architecture_of(config)) == pytest.approx(stated, rel=1e-3)


@pytest.mark.parametrize(("config", "active"), [(models.MIXTRAL_8X7B, 12.9e9), (models.QWEN3_30B_A3B, 3.3e9)])
def test_a_token_uses_some_experts(config: dict[str, Any], active: float) -> None:
    found = architecture_of(config)
    used = parameters(found) - found.experts * (1 - found.expert_share)
    assert used == pytest.approx(active, rel=0.02)


def test_sizes_come_as_they_are_written_or_follow_from_others() -> None:
    found = architecture_of(models.QWEN_7B)
    assert (found.layers, found.hidden, found.heads, found.kv_heads, found.head_dim) == (28, 3584, 28, 4, 128)
    assert (found.vocab, found.tied, found.context, found.windowed_layers) == (152_064, False, 32_768, 0)
    assert architecture_of({**models.LLAMA_8B, "num_key_value_heads": None}).kv_heads == 32
    assert architecture_of(models.GEMMA2_9B).tied


def test_windows_are_those_of_the_layers_that_have_them() -> None:
    every, half = architecture_of(models.MISTRAL_7B), architecture_of(models.GEMMA2_9B)
    assert (every.windowed_layers, every.window) == (32, 4096)
    assert (half.windowed_layers, half.window) == (21, 4096)
    assert architecture_of(models.QWEN_05B).windowed_layers == 0


@pytest.mark.parametrize(
    ("dtype", "quantization", "stored", "weight", "table"),
    [
        ("auto", None, {}, 2.0, 2.0),
        ("float32", None, {}, 4.0, 4.0),
        ("bfloat16", "fp8", {}, 1.0, 2.0),
        ("auto", None, {"quant_method": "awq", "bits": 4}, 0.5, 2.0),
        ("auto", "gptq_marlin", {"quant_method": "gptq", "bits": 8}, 1.0, 2.0),
        ("auto", None, {"quant_method": "bitsandbytes", "load_in_8bit": True}, 1.0, 2.0),
        (
            "auto",
            "compressed-tensors",
            {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8}}}},
            1.0,
            2.0,
        ),
    ],
)
def test_quantisation_makes_layers_smaller_and_leaves_embeddings(
    dtype: str, quantization: str | None, stored: dict[str, Any], weight: float, table: float
) -> None:
    config = {**models.QWEN_7B, "quantization_config": stored}
    found = architecture_of(config, dtype=dtype, quantization=quantization)
    assert (found.bytes_per_weight, found.bytes_per_embedding, found.bytes_per_kv) == (weight, table, table)
    assert weight_bytes(found) == pytest.approx(6.525e9 * weight + 1.090e9 * table, rel=1e-3)


def test_the_cache_may_be_held_in_bytes() -> None:
    assert architecture_of(models.QWEN_7B, kv_dtype="fp8_e4m3").bytes_per_kv == 1.0


def test_the_text_part_of_a_model_of_several_is_read() -> None:
    text = {key: value for key, value in models.LLAMA_8B.items() if key != "tie_word_embeddings"}
    found = architecture_of({"model_type": "of_images_too", "text_config": text, "tie_word_embeddings": True})
    assert (found.layers, found.tied) == (32, True)


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
json = st.recursive(
    values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)
keys = [*models.QWEN3_30B_A3B, "quantization_config", "layer_types", "sliding_window", "text_config"]


@given(
    st.sampled_from([models.LLAMA_8B, models.GEMMA2_9B, models.QWEN3_30B_A3B]),
    st.dictionaries(st.sampled_from(keys), json, max_size=3)
    | st.fixed_dictionaries(
        {"quantization_config": st.fixed_dictionaries({"quant_method": json, "config_groups": json})}
    ),
)
def test_a_config_is_read_or_its_fault_is_reported(config: dict[str, Any], changes: dict[str, Any]) -> None:
    with suppress(UnknownArchitecture):
        assert isinstance(architecture_of({**config, **changes}), Architecture)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({**models.LLAMA_8B, "model_type": "mamba2"}, "a model of type mamba2 are unknown"),
        ({}, "a model of type none are unknown"),
        ({**models.LLAMA_8B, "hidden_size": "4096"}, "does not state hidden_size"),
        ({**models.LLAMA_8B, "num_hidden_layers": 0}, "does not state num_hidden_layers"),
        ({**models.LLAMA_8B, "head_dim": "wide"}, "the model's config has an unexpected form"),
        ({**models.LLAMA_8B, "quantization_config": {"quant_method": "quip"}}, "under the quantization method quip"),
    ],
)
def test_what_is_not_known_is_said(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnknownArchitecture, match=reason):
        architecture_of(config)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 40GB"),
        ("NVIDIA L40S", "L40S"),
        ("h100 sxm", "H100 SXM"),
    ],
)
def test_the_names_that_drivers_report_are_known(name: str, known: str) -> None:
    found = device_named(name)
    assert found is not None
    assert found.name == known


@pytest.mark.parametrize("known", KNOWN)
def test_every_device_is_found_by_its_own_name(known: str) -> None:
    found, in_fp8 = device_named(known), device_named(known, fp8=True)
    assert found is not None
    assert in_fp8 is not None
    assert found.name == known
    assert in_fp8.flops / found.flops == pytest.approx(1 if known.startswith("A100") else 2, rel=0.02)
    assert 1e11 < found.bandwidth < 1e13
    assert 1e14 < found.flops < 1e16
    assert 4e10 <= found.memory < 3e11


@pytest.mark.parametrize(
    "name", ["", "cpu", "NVIDIA GH200 480GB", "NVIDIA L40", "NVIDIA L4", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "B200"]
)
def test_what_only_looks_alike_is_unknown(name: str) -> None:
    assert device_named(name) is None


@pytest.mark.parametrize(
    ("accelerator", "gigabytes"),
    [("H100", 80), ("H200", 141), ("A100", 40), ("A100-80G", 80), ("A100-40G", 40), ("L40S", 48), ("L4", None), ("T4", None)],
)  # fmt: skip
def test_of_the_devices_that_ray_calls_alike_the_smallest_counts(accelerator: str, gigabytes: float | None) -> None:
    assert least_memory(accelerator) == (None if gigabytes is None else gigabytes * 1e9)
