"""The resources of workers on clusters with and without GPUs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.label import ClusterConfig, PolicyConfig
from pipeline.core.errors import ClusterError
from pipeline.core.hardware import Architecture
from pipeline.engines.architectures import architecture_of
from pipeline.engines.registry import policy_for
from pipeline.engines.settings import DeviceConfig
from pipeline.engines.vllm.policies import HuggingFace
from pipeline.runtime import cluster
from pipeline.runtime.placement import Node, Share, share_of
from tests import models
from tests.settings import policy_settings

HEAD: Node = {"CPU": 4.0}
H100: Node = {"CPU": 64.0, "GPU": 8.0, "accelerator_type:H100": 1.0}
L40S: Node = {"CPU": 32.0, "GPU": 4.0, "accelerator_type:L40S": 1.0}
NAMELESS: Node = {"CPU": 32.0, "GPU": 4.0}
SEVEN, LARGE, HUGE = (architecture_of(config) for config in (models.QWEN_7B, models.QWEN_72B, models.LLAMA_405B))


def hf(tensor_parallel: int | None = None, device: DeviceConfig | None = None) -> Any:
    return policy_settings("hf", model="org/name", tensor_parallel=tensor_parallel, device=device or DeviceConfig())


class Sized(HuggingFace):
    """A policy with a model of these sizes."""

    def __init__(self, settings: PolicyConfig, model: Architecture | None) -> None:
        super().__init__(settings)
        self._model = model

    def architecture(self) -> Architecture | None:
        return self._model


def share(
    *nodes: Node,
    policy: PolicyConfig | None = None,
    model: Architecture | None = SEVEN,
    workers: int | None = None,
    cpus: float | None = None,
    gpus: float | None = None,
) -> Share:
    config = ClusterConfig(workers=workers, cpus_per_worker=cpus, gpus_per_worker=gpus)
    return share_of(nodes, config, Sized(policy or hf(), model))


def test_a_model_that_fits_has_a_copy_on_every_gpu() -> None:
    assert share(HEAD, H100, H100) == Share(workers=16, cpus=1.0, gpus=1.0, tensor_parallel=1)


def test_a_larger_model_is_spread_over_gpus_of_one_node() -> None:
    assert share(H100, H100, model=LARGE) == Share(workers=4, cpus=1.0, gpus=4.0, tensor_parallel=4)
    three: Node = {"CPU": 64.0, "GPU": 3.0}
    assert share(three, three, policy=hf(2)).workers == 2, "no worker takes one GPU of either node"


def test_the_smallest_gpu_of_the_cluster_decides() -> None:
    mixture = architecture_of(models.MIXTRAL_8X7B)
    assert share(H100, model=mixture).tensor_parallel == 2
    assert share(H100, L40S, model=mixture).tensor_parallel == 4


def test_what_is_not_known_gets_one_gpu() -> None:
    assert share(NAMELESS, model=LARGE).tensor_parallel == 1
    assert share(H100, NAMELESS, model=LARGE).tensor_parallel == 1
    assert share(H100, model=None).tensor_parallel == 1


def test_gpus_can_be_described() -> None:
    assert share(NAMELESS, policy=hf(device=DeviceConfig(name="H200 SXM")), model=LARGE).tensor_parallel == 2
    assert share(NAMELESS, policy=hf(device=DeviceConfig(memory=80e9)), model=LARGE).tensor_parallel == 4


def test_a_model_too_large_for_any_node_is_refused_with_what_helps() -> None:
    with pytest.raises(ClusterError, match=r"org/name has 812 GB of weights and a context of 131,072 tokens") as caught:
        share(H100, H100, model=HUGE)
    assert "too much for a node's 8 GPUs of 80 GB" in str(caught.value)
    for remedy in ("policy.quantization=fp8", "larger GPUs", "policy.tensor_parallel"):
        assert remedy in str(caught.value)
    assert share(H100, policy=hf(8), model=HUGE).workers == 1, "who says so is believed"


def test_what_is_asked_for_is_taken() -> None:
    assert share(H100, policy=hf(2)) == Share(workers=4, cpus=1.0, gpus=2.0, tensor_parallel=2)
    assert share(H100, gpus=2.0) == Share(workers=4, cpus=1.0, gpus=2.0, tensor_parallel=2)
    assert share(H100, gpus=0.5) == Share(workers=16, cpus=1.0, gpus=0.5, tensor_parallel=1)
    assert share(H100, workers=3, cpus=2.0) == Share(workers=3, cpus=2.0, gpus=1.0, tensor_parallel=1)


def test_few_processors_leave_gpus_empty() -> None:
    few: Node = {"CPU": 4.0, "GPU": 8.0}
    assert share(few).workers == 4
    assert share(few, cpus=2.0).workers == 2
    with pytest.raises(ClusterError, match=r"8 workers of 1 CPUs and 1 GPUs each do not fit: .* can hold 4"):
        share(few, workers=8)


def test_without_gpus_a_model_has_all_processors_of_a_node() -> None:
    assert share(HEAD) == Share(workers=1, cpus=4.0, gpus=0.0, tensor_parallel=1)
    assert share(HEAD, HEAD, workers=4) == Share(workers=4, cpus=2.0, gpus=0.0, tensor_parallel=1)
    with pytest.raises(ClusterError, match="1 workers of 8 CPUs and 0 GPUs"):
        share(HEAD, cpus=8.0)


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


@pytest.mark.parametrize(("cpu_build", "share"), [(True, (1, 16.0, 0.0)), (False, (4, 1.0, 1.0))])
def test_gpus_that_the_installed_vllm_cannot_use_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, cpu_build: bool, share: tuple[int, float, float]
) -> None:
    nodes = [{"Alive": True, "Resources": {"CPU": 16.0, "GPU": 4.0}}, {"Alive": False, "Resources": {"GPU": 8.0}}]
    monkeypatch.setattr("ray.nodes", lambda: nodes)
    monkeypatch.setattr(cluster, "is_cpu_build", lambda: cpu_build)
    found = cluster.share(ClusterConfig(), policy_for(policy_settings("embedded")))
    assert (found.workers, found.cpus, found.gpus) == share
