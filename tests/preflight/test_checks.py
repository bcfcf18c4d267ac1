"""Findings about machines: what is missing is named with the host and a remedy, and what is well is not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.preflight.checks import Finding, Level, Needs, counted, judge, judge_disks
from pipeline.preflight.machine import Gpu, Machine, parse_gpus, visible_gpus

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
NEEDS = Needs(gpus=True, paths=PATHS)


def found(*machines: Machine, needs: Needs = NEEDS) -> dict[str, Finding]:
    findings = [*judge(machines, needs), judge_disks(machines, gpus=needs.gpus, download=16 * GB)]
    return {finding.check: finding for finding in findings}


def test_good_nodes_have_no_remedy() -> None:
    findings = found(NODE, replace(NODE, host="b"))
    assert {finding.level for finding in findings.values()} == {Level.OK}
    assert not any(finding.remedy for finding in findings.values())
    assert findings["GPUs"].text == "2 x NVIDIA H100 80GB HBM3 on a, b"
    assert list(counted(list(findings.values()))) == []


OF_A_PLACE = [
    ({"driver": "570.86.10"}, "driver", "b: driver 570.86.10, and CUDA 13.0 of torch needs 580", "newer NVIDIA driver"),
    ({"torch_cuda": None}, "driver", "torch is built for CPUs on b", "install the gpu extra"),
    (
        {"gpus": (replace(H100, free=70 * GB), replace(H100, number=1, free=70 * GB))},
        "GPU memory",
        "b, GPU 1: 70.0 of 80.0 GB free",
        "nvidia-smi",
    ),
    ({"shared": 64 * 2**20}, "shared memory", "/dev/shm is too small on b: 0.07 of 2.1 GB", "--shm-size"),
    ({"c_compiler": False}, "compiler", "no C compiler on b", "gcc"),
    ({"python_headers": False}, "compiler", "no Python.h on b", "python3-dev"),
    (
        {"caches": {"models": ("/cache", 3 * GB)}},
        "disk",
        "b: 3.0 GB free in /cache, and models need 16.0 GB",
        "HF_HOME",
    ),
    ({"answers": False}, "nodes", "no answer from b", "ray status"),
]
OF_A_PLACE.append(
    ({"sees": {"/shared/run": True}}, "model", "/models/m does not exist on b", "mount under the same name")
)
OF_THE_RUN = [
    ({"python": "3.11.9"}, "versions", "Python 3.12.3 on a, 3.11.9 on b", "same packages on all nodes"),
    ({"packages": {"ray": "2.59.0"}}, "versions", "ray 2.60.0 on a, 2.59.0 on b", "same packages on all nodes"),
    ({"sees": {"/models/m": True}}, "run_dir", "/shared/run does not exist on b", "s3://"),
]


@pytest.mark.parametrize(("changed", "check", "text", "remedy"), OF_A_PLACE)
def test_a_place_that_fails_is_a_warning_beside_others_and_a_failure_alone(
    changed: dict[str, Any], check: str, text: str, remedy: str
) -> None:
    bad = replace(NODE, host="b", **changed)
    for findings, level, counts in (
        (found(NODE, bad), Level.WARNING, "1 warning"),
        (found(bad), Level.FAILED, "1 failed"),
    ):
        assert findings[check].level is level
        assert text in findings[check].text
        assert remedy in findings[check].remedy
        if findings.keys() != {check, "disk"}:  # a node that does not answer has no other findings
            assert [each.check for each in findings.values() if each.level is not Level.OK] == [check]
            assert list(counted(list(findings.values()))) == [counts]


@pytest.mark.parametrize(("changed", "check", "text", "remedy"), OF_THE_RUN)
def test_nodes_that_do_not_fit_together_fail(changed: dict[str, Any], check: str, text: str, remedy: str) -> None:
    findings = found(NODE, replace(NODE, host="b", **changed))
    assert findings[check].level is Level.FAILED
    assert text in findings[check].text
    assert remedy in findings[check].remedy
    assert [finding.check for finding in findings.values() if finding.level is not Level.OK] == [check]


def test_gpus_that_ray_counts_and_nobody_sees_are_a_warning_unless_too_few_are_left() -> None:
    lost = replace(NODE, host="b", resources={"GPU": 3.0})
    finding = found(lost)["GPUs"]
    assert finding.level is Level.WARNING
    assert "Ray counts more GPUs than there are: 3 on b, and 2 can be seen there" in finding.text
    assert "nvidia-smi" in finding.remedy
    assert found(lost, needs=replace(NEEDS, parts=3))["GPUs"].level is Level.FAILED


def test_one_full_gpu_of_several_is_a_warning() -> None:
    full = replace(NODE, gpus=(H100, replace(H100, number=1, free=GB)))
    assert found(full)["GPU memory"].level is Level.WARNING


def test_a_node_that_gets_no_worker_needs_no_disk() -> None:
    head = replace(NODE, host="head", gpus=(), caches={"models": ("/cache", 0)})
    assert found(NODE, head)["disk"].level is Level.OK


def test_a_model_that_is_in_the_cache_needs_no_space() -> None:
    little = replace(NODE, caches={"models": ("/cache", 3 * GB)}, has_models=True)
    assert found(little)["disk"].level is Level.OK
    assert found(replace(little, has_models=False))["disk"].level is Level.FAILED


def test_several_nodes_of_a_host_are_named_once() -> None:
    bare = replace(NODE, c_compiler=False)
    assert "no C compiler on a:" in found(bare, bare)["compiler"].text
    assert found(NODE, NODE)["GPUs"].text == "2 x NVIDIA H100 80GB HBM3 on a"


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


NUMBERED = tuple(replace(H100, number=number, uuid=f"GPU-{number}a{number}b") for number in range(3))


@pytest.mark.parametrize(
    ("visible", "left"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("-1", []),
        ("2", [2]),
        ("2,0", [2, 0]),
        ("0,7,1", [0]),
        ("1,-1,2", [1]),
        ("GPU-1a", [1]),
        ("NoDevFiles", []),
    ],
)
def test_only_the_gpus_that_are_named_are_visible(visible: str | None, left: list[int]) -> None:
    assert [gpu.number for gpu in visible_gpus(NUMBERED, visible)] == left


def test_a_slice_that_is_named_stands_for_the_divided_gpus() -> None:
    gpus = (NUMBERED[0], replace(NUMBERED[1], sliced=True))
    assert visible_gpus(gpus, "MIG-5f") == (gpus[1],)


@given(st.integers(0, 8), st.none() | st.text(alphabet="0123456789,-GPU ab"))
def test_visible_gpus_are_some_of_those_that_are_there_each_once(count: int, visible: str | None) -> None:
    gpus = [replace(H100, number=number, uuid=f"GPU-{number}") for number in range(count)]
    left = visible_gpus(gpus, visible)
    assert len({gpu.number for gpu in left}) == len(left)
    assert set(left) <= set(gpus)


def test_gpus_that_are_hidden_everywhere_fail_and_elsewhere_are_mentioned() -> None:
    hidden = replace(NODE, host="b", gpus=(), hidden=2)
    finding = found(hidden)["GPUs"]
    assert (finding.level, finding.text) == (Level.FAILED, "CUDA_VISIBLE_DEVICES hides all GPUs of b")
    assert "unset CUDA_VISIBLE_DEVICES" in finding.remedy
    assert found(NODE, hidden)["GPUs"].level is Level.OK, "a head without visible GPUs beside workers that have some"
    assert "(1 more hidden by CUDA_VISIBLE_DEVICES)" in found(replace(NODE, gpus=(H100,), hidden=1))["GPUs"].text


def test_memory_of_a_gpu_that_is_unknown_is_not_judged() -> None:
    finding = found(replace(NODE, gpus=(replace(H100, memory=None, free=None),)))["GPU memory"]
    assert (finding.level, "not known for all GPUs" in finding.text) == (Level.OK, True)


def test_an_older_driver_may_do_with_compatibility_libraries() -> None:
    old = replace(NODE, driver="570.86.10")
    assert found(old)["driver"].level is Level.FAILED
    finding = found(replace(old, compatibility=True))["driver"]
    assert (finding.level, "VLLM_ENABLE_CUDA_COMPATIBILITY=1" in finding.text) == (Level.WARNING, True)


def test_slices_are_not_judged_by_the_memory_of_their_gpu() -> None:
    sliced = replace(NODE, gpus=(replace(H100, sliced=True, free=GB),))
    assert found(sliced)["GPU memory"].level is Level.OK


def test_a_node_with_as_many_gpus_is_enough_beside_smaller_ones() -> None:
    assert found(NODE, replace(NODE, host="b", gpus=(H100,)), needs=replace(NEEDS, parts=2))["GPUs"].level is Level.OK


def test_without_gpus_nothing_is_said_of_them_unless_they_are_needed() -> None:
    cpu = replace(NODE, gpus=(), driver=None, torch_cuda=None, shared=0, c_compiler=False)
    assert {finding.level for finding in found(cpu, needs=Needs(paths=PATHS)).values()} == {Level.OK}
    findings = found(cpu)
    assert "nvidia-smi finds no GPU" in findings["GPUs"].text
    assert not {"driver", "GPU memory", "shared memory", "compiler"} & set(findings), "nothing to say of GPUs"


def test_a_model_in_more_parts_than_a_node_has_gpus_is_refused() -> None:
    finding = found(NODE, needs=replace(NEEDS, parts=4))["GPUs"]
    assert (finding.level, "4 GPUs of one node" in finding.text) == (Level.FAILED, True)


def test_a_sampler_that_needs_nvcc_is_mentioned() -> None:
    bare = replace(NODE, cuda_compiler=False)
    assert "instead of FlashInfer" in found(bare, needs=replace(NEEDS, filtered=True))["compiler"].text
    assert "instead of FlashInfer" not in found(bare)["compiler"].text


def test_the_output_of_nvidia_smi_is_read() -> None:
    printed = (
        "NVIDIA H100 80GB HBM3, 580.95.05, 81559, 80994, Disabled, GPU-5a\n"
        "NVIDIA A100, 580.95.05, 40960, 100, Enabled, GPU-6b\n"
        "NVIDIA GB10, 580.95.05, [N/A], [N/A], [N/A], GPU-7c\n"
        "[N/A]\n"
    )
    driver, gpus = parse_gpus(printed)
    assert driver == "580.95.05"
    assert gpus[0] == Gpu(name="NVIDIA H100 80GB HBM3", memory=81559 * 2**20, free=80994 * 2**20, uuid="GPU-5a")
    assert [gpu.sliced for gpu in gpus] == [False, True, False]
    assert (gpus[2].memory, gpus[2].free, gpus[2].number) == (None, None, 2)


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
            hidden=st.integers(0, 2),
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
    for finding in judge(machines, Needs(gpus=gpus, unasked_cpus=not gpus)):
        assert bool(finding.remedy) == (finding.level is not Level.OK)
        assert finding.text
