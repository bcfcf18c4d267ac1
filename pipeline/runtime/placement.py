"""Determines the number of workers and the resources of each, from the resources of the cluster's nodes. Pure.

All GPUs of a worker are on one node. A model that fits on one GPU gets one GPU per worker. A larger model is spread over
several GPUs of a node (see `roofline`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.config.label import ClusterConfig
from pipeline.core.errors import ClusterError
from pipeline.core.hardware import least_memory
from pipeline.engines.base import Policy

Node = Mapping[str, float]
"""The resources of a Ray node, by name."""
_ACCELERATOR = "accelerator_type:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The number of workers, the CPUs and GPUs of each, and the number of GPUs that the model is spread over."""

    workers: int
    cpus: float
    gpus: float
    tensor_parallel: int


def share_of(nodes: Sequence[Node], config: ClusterConfig, policy: Policy) -> Share:
    """The share of each worker, with defaults filled in.

    Raises ClusterError if the workers do not fit on the cluster, or the model does not fit on any node.
    """
    on_gpus = policy.loads_model and any(node.get("GPU", 0.0) for node in nodes)
    gpus, parts = config.gpus_per_worker, policy.given_tensor_parallel()
    if parts is None and gpus is not None:
        parts = max(1, int(gpus))
    elif parts is None:
        most = int(max((node.get("GPU", 0.0) for node in nodes), default=0.0))
        parts = policy.choose_tensor_parallel(most, _memory(nodes)) if on_gpus else 1
    if gpus is None:
        gpus = float(parts) if on_gpus else 0.0
    cpus = config.cpus_per_worker
    workers = config.workers or (max(1, _fitting(nodes, cpus or 1.0, gpus)) if gpus else 1)
    if cpus is None:
        cpus = 1.0 if gpus or not policy.loads_model else _cpus_of_one(nodes, workers)
    if (fitting := _fitting(nodes, cpus, gpus)) < workers:
        raise ClusterError(
            f"{workers} workers of {cpus:g} CPUs and {gpus:g} GPUs each do not fit: the cluster's nodes can hold "
            f"{fitting}; lower cluster.workers, cluster.cpus_per_worker or cluster.gpus_per_worker"
        )
    return Share(workers=workers, cpus=cpus, gpus=gpus, tensor_parallel=parts)


def _memory(nodes: Sequence[Node]) -> float | None:
    """Memory in bytes of the cluster's smallest GPU; None if the memory of any GPU is unknown."""
    sizes: list[float | None] = []
    for node in nodes:
        if node.get("GPU", 0.0):
            names = [name.removeprefix(_ACCELERATOR) for name in node if name.startswith(_ACCELERATOR)]
            sizes += [least_memory(name) for name in names] or [None]
    known = [size for size in sizes if size is not None]
    return min(known) if known and len(known) == len(sizes) else None


def _cpus_of_one(nodes: Sequence[Node], workers: int) -> float:
    """CPUs per worker if all CPUs are divided among the workers, but at most those of the largest node."""
    counts = [node.get("CPU", 0.0) for node in nodes]
    return max(1.0, min(max(counts, default=0.0), sum(counts) // workers))


def _fitting(nodes: Sequence[Node], cpus: float, gpus: float) -> int:
    """Number of workers that fit on the nodes if nothing else runs there."""
    needs = [(name, need) for name, need in (("CPU", cpus), ("GPU", gpus)) if need]
    return sum(int(min(node.get(name, 0.0) // need for name, need in needs)) for node in nodes)
