"""Devices are found by the names that NVML, Ray and users use."""

import pytest

from pipeline.core.hardware import KNOWN, device_named, least_memory


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
