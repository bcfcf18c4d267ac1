"""Findings about machines: what is missing is named with the host and a remedy, and what is well is not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.base import EngineNeeds
from pipeline.preflight.checks import Finding, Level, counted, judge
from pipeline.preflight.machine import Gpu, Machine, parse_gpus

GB = 10**9
H100 = Gpu(name="NVIDIA H100 80GB HBM3", memory=80 * GB, free=79 * GB)
NODE = Machine(
    host="a",
    python="3.12.3",
    packages={"stepvalue": "0.1.0", "ray": "2.60.0", "vllm": "0.32.0", "torch": "2.13.0"},
    driver="580.95.05",
    gpus=(H100, H100),
    torch_cuda="13.0",
    shared=32 * GB,
    caches={"models": ("/cache", 900 * GB), "compiled kernels": ("/kernels", 900 * GB)},
    sees={"/models/m": True, "/shared/run": True},
)
PATHS = {"model": "/models/m", "run_dir": "/shared/run"}
NEEDS = EngineNeeds(gpus=True)


def found(*machines: Machine, needs: EngineNeeds = NEEDS, parts: int = 1, filtered: bool = False) -> dict[str, Finding]:
    return {
        finding.check: finding
        for finding in judge(machines, needs, PATHS, parts=parts, filtered=filtered, download=16 * GB)
    }


def test_good_nodes_have_no_remedy() -> None:
    findings = found(NODE, replace(NODE, host="b"))
    assert {finding.level for finding in findings.values()} == {Level.OK}
    assert not any(finding.remedy for finding in findings.values())
    assert findings["GPUs"].text == "2 x NVIDIA H100 80GB HBM3 on a, b"
    assert list(counted(list(findings.values()))) == []


@pytest.mark.parametrize(
    ("changed", "check", "text", "remedy"),
    [
        (
            {"driver": "570.86.10"},
            "driver",
            "b: driver 570.86.10, and CUDA 13.0 of torch needs 580",
            "newer NVIDIA driver",
        ),
        ({"torch_cuda": None}, "driver", "b: torch is built for CPUs", "gpu extra"),
        ({"visible": ""}, "GPUs", "CUDA_VISIBLE_DEVICES is empty on b", "unset CUDA_VISIBLE_DEVICES"),
        ({"gpus": (H100, replace(H100, free=70 * GB))}, "GPU memory", "b, GPU 1: 70.0 of 80.0 GB free", "nvidia-smi"),
        ({"shared": 64 * 2**20}, "shared memory", "/dev/shm is too small on b: 0.07 of 2.1 GB", "--shm-size"),
        ({"c_compiler": False}, "compiler", "no C compiler on b", "gcc"),
        ({"python": "3.11.9"}, "versions", "Python 3.12.3 on a, 3.11.9 on b", "same packages on all nodes"),
        ({"packages": {"ray": "2.59.0"}}, "versions", "ray 2.60.0 on a, 2.59.0 on b", "same packages on all nodes"),
        (
            {"caches": {"models": ("/cache", 3 * GB)}},
            "disk",
            "b: 3.0 GB free in /cache, and models need 16.0 GB",
            "HF_HOME",
        ),
        ({"sees": {"/models/m": True}}, "run_dir", "/shared/run does not exist on b", "s3://"),
        ({"sees": {"/shared/run": True}}, "model", "/models/m does not exist on b", "mount under the same name"),
        ({"answers": False}, "nodes", "no answer from b", "ray status"),
    ],
)
def test_what_is_wrong_on_one_node_is_named_with_its_host(
    changed: dict[str, Any], check: str, text: str, remedy: str
) -> None:
    findings = found(NODE, replace(NODE, host="b", **changed))
    assert findings[check].level is Level.FAILED
    assert text in findings[check].text
    assert remedy in findings[check].remedy
    assert [finding.check for finding in findings.values() if finding.level is not Level.OK] == [check]
    assert list(counted(list(findings.values()))) == ["1 failed"]


@pytest.mark.parametrize(
    ("changed", "check", "text"),
    [
        ({"clock": 61.0}, "clocks", "differ by 61 s"),
        ({"gpus": (replace(H100, sliced=True),)}, "GPUs", "b: GPUs are divided by MIG"),
    ],
)
def test_what_may_be_meant_is_a_warning(changed: dict[str, Any], check: str, text: str) -> None:
    finding = found(NODE, replace(NODE, host="b", **changed))[check]
    assert (finding.level, text in finding.text, bool(finding.remedy)) == (Level.WARNING, True, True)


@pytest.mark.parametrize("visible", ["0", "1", "11", "-1,0", "GPU-1", None])
def test_gpus_that_are_named_are_not_hidden(visible: str | None) -> None:
    assert found(replace(NODE, visible=visible))["GPUs"].level is Level.OK


def test_an_older_driver_may_do_with_compatibility_libraries() -> None:
    old = replace(NODE, driver="570.86.10")
    assert found(old)["driver"].level is Level.FAILED
    finding = found(replace(old, compatibility=True))["driver"]
    assert (finding.level, "VLLM_ENABLE_CUDA_COMPATIBILITY=1" in finding.text) == (Level.WARNING, True)


def test_slices_are_not_judged_by_the_memory_of_their_gpu() -> None:
    sliced = replace(NODE, gpus=(replace(H100, sliced=True, free=GB),))
    assert found(sliced)["GPU memory"].level is Level.OK


def test_a_node_with_as_many_gpus_is_enough_beside_smaller_ones() -> None:
    assert found(NODE, replace(NODE, host="b", gpus=(H100,)), parts=2)["GPUs"].level is Level.OK


def test_without_gpus_nothing_is_said_of_them_unless_they_are_needed() -> None:
    cpu = replace(NODE, gpus=(), driver=None, torch_cuda=None, shared=0, c_compiler=False)
    assert {finding.level for finding in found(cpu, needs=EngineNeeds()).values()} == {Level.OK}
    assert "nvidia-smi finds no GPU" in found(cpu)["GPUs"].text


def test_a_model_in_more_parts_than_a_node_has_gpus_is_refused() -> None:
    finding = found(NODE, parts=4)["GPUs"]
    assert (finding.level, "4 GPUs of one node" in finding.text) == (Level.FAILED, True)


def test_a_sampler_that_needs_nvcc_is_mentioned() -> None:
    bare = replace(NODE, cuda_compiler=False)
    assert "instead of FlashInfer" in found(bare, filtered=True)["compiler"].text
    assert "instead of FlashInfer" not in found(bare)["compiler"].text


def test_the_output_of_nvidia_smi_is_read() -> None:
    printed = (
        "NVIDIA H100 80GB HBM3, 580.95.05, 81559, 80994, Disabled\nNVIDIA A100, 580.95.05, 40960, 100, Enabled\n[N/A]\n"
    )
    driver, gpus = parse_gpus(printed)
    assert driver == "580.95.05"
    assert gpus[0] == Gpu(name="NVIDIA H100 80GB HBM3", memory=81559 * 2**20, free=80994 * 2**20)
    assert gpus[1].sliced
    assert len(gpus) == 2


@given(st.text())
def test_any_output_of_nvidia_smi_is_survived(printed: str) -> None:
    driver, gpus = parse_gpus(printed)
    assert (driver is None) or printed
    assert isinstance(gpus, tuple)


@given(
    st.lists(
        st.builds(
            Machine,
            host=st.text(min_size=1),
            python=st.just("3.12.3"),
            driver=st.none() | st.sampled_from(["", "535.1", "580"]),
            gpus=st.lists(st.just(H100), max_size=2).map(tuple),
            visible=st.none() | st.text(),
            torch_cuda=st.none() | st.sampled_from(["12.8", "13.0", "99"]),
            shared=st.integers(0, 10**12),
            clock=st.floats(-100, 100),
            answers=st.booleans(),
        ),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
)
def test_every_failure_has_a_remedy(machines: list[Machine], gpus: bool) -> None:
    for finding in judge(machines, EngineNeeds(gpus=gpus), {}, filtered=False):
        assert bool(finding.remedy) == (finding.level is not Level.OK)
        assert finding.text
