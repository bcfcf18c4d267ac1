"""The resources of workers on clusters with and without GPUs."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.__main__ import main
from pipeline.config.label import ClusterConfig, PolicyConfig
from pipeline.core.errors import ClusterError, UsageError
from pipeline.core.hardware import Architecture
from pipeline.engines.architectures import architecture_of
from pipeline.engines.registry import policy_for
from pipeline.engines.settings import DeviceConfig
from pipeline.engines.vllm import policies
from pipeline.engines.vllm.policies import HuggingFace
from pipeline.runtime import cluster
from pipeline.runtime.placement import Node, Share, demand, share_of, unused_gpus
from tests import models
from tests.settings import policy_settings

HEAD: Node = {"CPU": 4.0}
H100: Node = {"CPU": 64.0, "GPU": 8.0, "accelerator_type:H100": 1.0}
L40S: Node = {"CPU": 32.0, "GPU": 4.0, "accelerator_type:L40S": 1.0}
NAMELESS: Node = {"CPU": 32.0, "GPU": 4.0}
SEVEN, LARGE, HUGE = (architecture_of(config) for config in (models.QWEN_7B, models.QWEN_72B, models.LLAMA_405B))


def hf(tensor_parallel: int | None = None, device: DeviceConfig | None = None) -> Any:
    return policy_settings("hf", model="org/name", tensor_parallel=tensor_parallel, device=device or DeviceConfig())


def named(name: str = "", **own: float) -> Any:
    return hf(device=DeviceConfig(name=name, **own))


class Sized(HuggingFace):
    """A policy with a model of these sizes."""

    def __init__(self, settings: PolicyConfig, model: Architecture | None, needs_gpus: bool | None) -> None:
        super().__init__(settings)
        self._model = model
        self._needs_gpus = needs_gpus

    def architecture(self) -> Architecture | None:
        return self._model

    def uses_gpus(self) -> bool | None:
        return self._needs_gpus


def share(
    *nodes: Node,
    policy: PolicyConfig | None = None,
    model: Architecture | None = SEVEN,
    workers: int | None = None,
    cpus: float | None = None,
    gpus: float | None = None,
    needs_gpus: bool | None = None,
) -> Share:
    config = ClusterConfig(workers=workers, cpus_per_worker=cpus, gpus_per_worker=gpus)
    return share_of(nodes, config, Sized(policy or hf(), model, needs_gpus))


MIXTURE = architecture_of(models.MIXTRAL_8X7B)
THREE: Node = {"CPU": 64.0, "GPU": 3.0}
FEW: Node = {"CPU": 4.0, "GPU": 8.0}
SHARES: list[tuple[str, list[Node], dict[str, Any], dict[str, float]]] = [
    ("a copy on every GPU", [HEAD, H100, H100], {}, {"workers": 16, "cpus": 1.0, "gpus": 1.0, "tensor_parallel": 1}),
    ("over GPUs of one node", [H100, H100], {"model": LARGE}, {"workers": 4, "gpus": 4.0, "tensor_parallel": 4}),
    ("no worker takes one GPU of either node", [THREE, THREE], {"policy": hf(2)}, {"workers": 2}),
    ("one kind of GPU", [H100], {"model": MIXTURE}, {"tensor_parallel": 2}),
    ("the smallest GPU decides", [H100, L40S], {"model": MIXTURE}, {"tensor_parallel": 4}),
    ("a GPU that is not known", [NAMELESS], {"model": LARGE}, {"tensor_parallel": 1}),
    ("one of the GPUs is not known", [H100, NAMELESS], {"model": LARGE}, {"tensor_parallel": 1}),
    ("a model that is not known", [H100], {"model": None}, {"tensor_parallel": 1}),
    ("a GPU by name", [NAMELESS], {"policy": named("H200 SXM"), "model": LARGE}, {"tensor_parallel": 2}),
    ("a GPU by memory", [NAMELESS], {"policy": named(memory=80e9), "model": LARGE}, {"tensor_parallel": 4}),
    ("who says so is believed", [H100], {"policy": hf(8), "model": HUGE}, {"workers": 1}),
    ("parts are asked for", [H100], {"policy": hf(2)}, {"workers": 4, "cpus": 1.0, "gpus": 2.0, "tensor_parallel": 2}),
    ("GPUs are asked for", [H100], {"gpus": 2.0}, {"workers": 4, "cpus": 1.0, "gpus": 2.0, "tensor_parallel": 2}),
    ("workers are asked for", [H100], {"workers": 3, "cpus": 2.0}, {"workers": 3, "cpus": 2.0, "gpus": 1.0}),
    ("as many GPUs as parts", [H100], {"policy": hf(2), "gpus": 2.0}, {"tensor_parallel": 2}),
    ("few processors leave GPUs empty", [FEW], {}, {"workers": 4}),
    ("with two processors each", [FEW], {"cpus": 2.0}, {"workers": 2}),
    ("all processors of a node", [HEAD], {}, {"workers": 1, "cpus": 4.0, "gpus": 0.0, "tensor_parallel": 1}),
    ("shared processors", [HEAD, HEAD], {"workers": 4}, {"workers": 4, "cpus": 2.0, "gpus": 0.0}),
    ("GPUs are needed", [HEAD, H100], {"needs_gpus": True}, {"workers": 8}),
    ("GPUs are not needed", [HEAD, H100], {"needs_gpus": False}, {"gpus": 0.0}),
    ("GPUs are declined", [HEAD], {"needs_gpus": True, "gpus": 0}, {"gpus": 0.0}),
    *(
        (
            f"{gpus} of a GPU",
            [H100],
            {"gpus": gpus},
            {"workers": workers, "cpus": 1.0, "gpus": gpus, "tensor_parallel": 1},
        )
        for gpus, workers in ((0.5, 16), (0.3, 24), (0.25, 32), (0.1, 64), (0.6, 8))
    ),
]


@pytest.mark.parametrize(("nodes", "asked", "wanted"), [each[1:] for each in SHARES], ids=[each[0] for each in SHARES])
def test_shares_of_workers(nodes: list[Node], asked: dict[str, Any], wanted: dict[str, float]) -> None:
    taken = share(*nodes, **asked)
    assert {name: getattr(taken, name) for name in wanted} == wanted


def test_a_model_too_large_for_any_node_is_refused_with_what_helps() -> None:
    with pytest.raises(ClusterError, match=r"org/name has 812 GB of weights and a context of 131,072 tokens") as caught:
        share(H100, H100, model=HUGE)
    assert "too much for a node's 8 GPUs of 80 GB" in str(caught.value)
    for remedy in ("policy.quantization=fp8", "larger GPUs", "policy.tensor_parallel"):
        assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "wanted", "remedy"),
    [
        ([H100], {"workers": 9}, "lower cluster.workers or cluster.gpus_per_worker, or use more or larger nodes"),
        ([H100], {"gpus": 16.0}, "lower cluster.gpus_per_worker, or use more or larger nodes"),
        ([HEAD], {"cpus": 8.0}, "lower cluster.cpus_per_worker, or use more or larger nodes"),
        ([HEAD], {"cpus": 8.0, "workers": 2}, "lower cluster.cpus_per_worker, or use more or larger nodes"),
        ([HEAD], {"workers": 5}, "lower cluster.workers or cluster.cpus_per_worker, or use more or larger nodes"),
        (
            [{"CPU": 4.0, "GPU": 8.0}],
            {"workers": 9},
            "lower cluster.workers, cluster.cpus_per_worker or cluster.gpus_per_worker, or use more or larger nodes",
        ),
        ([{"CPU": 0.0}], {}, "use larger nodes"),
        ([{"CPU": 8.0}, {"CPU": 1.0, "GPU": 1.0}], {"cpus": 2.0, "gpus": 1.0}, "use larger nodes"),
    ],
)
def test_only_what_helps_is_to_be_lowered(nodes: list[Node], wanted: dict[str, Any], remedy: str) -> None:
    with pytest.raises(ClusterError) as caught:
        share(*nodes, **wanted)
    assert str(caught.value).endswith(f"; {remedy}")


@pytest.mark.parametrize("command", ["label", "plan", "doctor"])
@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (
            ["policy.tensor_parallel=4", "cluster.gpus_per_worker=2"],
            "policy.tensor_parallel=4 spreads the model over more",
        ),
        (["policy.memory_share=0.9", "cluster.gpus_per_worker=0.5"], "policy.memory_share=0.9 is more of a GPU"),
    ],
)
def test_gpus_that_contradict_the_policy_are_refused_before_the_command_runs(
    command: str, settings: list[str], fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [command, "data=sample", "policy=hf", "policy.model=org/name", f"run_dir={tmp_path / 'run'}", *settings]
    assert main(line) == 2
    printed = capsys.readouterr()
    assert fault in printed.err
    assert printed.out == ""
    assert not (tmp_path / "run").exists()


def test_the_oracle_takes_no_gpu_and_one_processor() -> None:
    taken = share_of([H100], ClusterConfig(), policy_for(policy_settings("oracle")))
    assert taken == Share(workers=1, cpus=1.0, gpus=0.0, tensor_parallel=1)


nodes = st.lists(st.fixed_dictionaries({"CPU": st.integers(1, 64), "GPU": st.integers(0, 8)}), min_size=1, max_size=6)


@given(nodes, st.sampled_from([1, 2, 4, 8]))
def test_the_workers_that_are_taken_fit_and_leave_no_space_for_another(found: list[dict[str, int]], parts: int) -> None:
    have = [{name: float(count) for name, count in node.items()} for node in found]
    try:
        taken = share(*have, policy=hf(parts))
    except ClusterError:
        assert all(node["GPU"] < parts for node in found)
        return
    if not taken.gpus:
        assert not any(node["GPU"] for node in found)
        return
    held = [min(node["CPU"] // 1, node["GPU"] // parts) for node in found]
    assert taken.workers == sum(held)


@pytest.mark.parametrize(("build", "share"), [(False, (1, 16.0, 0.0)), (True, (4, 1.0, 1.0)), (None, (4, 1.0, 1.0))])
def test_gpus_that_the_installed_vllm_cannot_use_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, build: bool | None, share: tuple[int, float, float]
) -> None:
    nodes = [{"Alive": True, "Resources": {"CPU": 16.0, "GPU": 4.0}}, {"Alive": False, "Resources": {"GPU": 8.0}}]
    monkeypatch.setattr("ray.nodes", lambda: nodes)
    monkeypatch.setattr(policies, "on_gpu_build", lambda: build)
    found = cluster.share(ClusterConfig(), policy_for(policy_settings("embedded")))
    assert (found.workers, found.cpus, found.gpus) == share


def test_settings_decide_about_gpus_and_not_those_that_are_there_at_the_first_look() -> None:
    with pytest.raises(
        ClusterError, match=r"1 worker of 1 CPU and 1 GPU does not fit.* 0 \(4 CPUs and 0 GPUs on 1 node"
    ):
        share(HEAD, needs_gpus=True)
    for gpus in (1.0, 0.5):
        with pytest.raises(ClusterError):
            share(HEAD, needs_gpus=False, gpus=gpus)


@given(nodes, st.floats(0.01, 1.0, exclude_max=True))
def test_fractions_fill_each_gpu_at_most_once(found: list[dict[str, int]], gpus: float) -> None:
    have = [{**{name: float(count) for name, count in node.items()}, "CPU": 1e6} for node in found]
    on_one = int(1 / gpus + 1e-9)
    assert on_one * gpus <= 1 + 1e-6
    total = on_one * sum(node["GPU"] for node in found)
    if not total:
        with pytest.raises(ClusterError):
            share(*have, gpus=gpus)
    else:
        assert share(*have, gpus=gpus).workers == total


def test_a_model_on_more_gpus_than_its_worker_has_is_refused() -> None:
    for gpus in (1.0, 0.5):
        with pytest.raises(
            UsageError, match=r"policy\.tensor_parallel=2 .* set cluster\.gpus_per_worker=2, or leave it out"
        ):
            share(H100, policy=hf(2), gpus=gpus)


def test_memory_for_more_than_the_share_of_a_gpu_is_refused() -> None:
    asked = policy_settings("hf", model="org/name", memory_share=0.9)
    with pytest.raises(
        UsageError, match=r"policy\.memory_share=0\.9 .* set policy\.memory_share=0\.45, or leave it out"
    ):
        share(H100, policy=asked, gpus=0.5)
    assert share(H100, policy=asked, gpus=1.0).gpus == 1.0


def test_gpus_that_nobody_gets_are_reported_unless_that_was_asked_for() -> None:
    few = unused_gpus([FEW], share(FEW), ClusterConfig())
    assert "4 workers use 4 of the cluster's 8 GPUs: each needs 1 CPU" in few
    three = unused_gpus([THREE] * 2, share(THREE, THREE, policy=hf(2)), ClusterConfig())
    assert "use 4 of the cluster's 6 GPUs" in three
    assert not unused_gpus([H100], share(H100), ClusterConfig())
    assert not unused_gpus([H100], share(H100, gpus=0.5), ClusterConfig())
    assert not unused_gpus([H100], share(H100, workers=3), ClusterConfig(workers=3))
    assert not unused_gpus([H100], share(H100, gpus=0), ClusterConfig())


def test_an_autoscaler_is_asked_for_what_is_known() -> None:
    def asked(policy: PolicyConfig, **settings: Any) -> tuple[Node, int]:
        return demand(ClusterConfig(**settings), Sized(policy, None, needs_gpus=True), [])

    assert asked(hf()) == ({"CPU": 1.0, "GPU": 1.0}, 1)
    assert asked(hf(4), workers=8, cpus_per_worker=6.0) == ({"CPU": 6.0, "GPU": 4.0}, 8)
    assert asked(hf(), workers=2, gpus_per_worker=0) == ({"CPU": 1.0}, 2)
