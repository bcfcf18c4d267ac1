"""What a worker takes of a cluster, and how many there are: pure, from what its nodes have.

A worker lies on one node with all its GPUs. Models that fit on one GPU get one each; larger ones are spread over the GPUs of a
node (`roofline`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.config.label import ClusterConfig
from pipeline.core.errors import ClusterError
from pipeline.core.hardware import least_memory
from pipeline.engines.base import Policy

Node = Mapping[str, float]
"""What a node of Ray has, by the name of the resource."""
_ACCELERATOR = "accelerator_type:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many workers there are, what each takes, and over how many of its GPUs it spreads its model."""

    workers: int
    cpus: float
    gpus: float
    tensor_parallel: int


def share_of(nodes: Sequence[Node], config: ClusterConfig, policy: Policy) -> Share:
    """The share of each worker, with the defaults filled in. Raises ClusterError where the cluster cannot hold the workers, or
    no node the model."""
    on_gpus = policy.loads_model and any(node.get("GPU", 0.0) for node in nodes)
    gpus, parts = config.gpus_per_worker, policy.spread_over()
    if parts is None and gpus is not None:
        parts = max(1, int(gpus))
    elif parts is None:
        most = int(max((node.get("GPU", 0.0) for node in nodes), default=0.0))
        parts = policy.spread(most, _memory(nodes)) if on_gpus else 1
    if gpus is None:
        gpus = float(parts) if on_gpus else 0.0
    cpus = config.cpus_per_worker
    workers = config.workers or (max(1, _fitting(nodes, cpus or 1.0, gpus)) if gpus else 1)
    if cpus is None:
        cpus = 1.0 if gpus or not policy.loads_model else _cpus_of_one(nodes, workers)
    if (fitting := _fitting(nodes, cpus, gpus)) < workers:
        raise ClusterError(
            f"{workers} workers of {cpus:g} CPUs and {gpus:g} GPUs each do not fit: the cluster's nodes have room for {fitting}; "
            "lower cluster.workers, cluster.cpus_per_worker or cluster.gpus_per_worker"
        )
    return Share(workers=workers, cpus=cpus, gpus=gpus, tensor_parallel=parts)


def _memory(nodes: Sequence[Node]) -> float | None:
    """Bytes of the cluster's smallest GPU; None where one of them is not known."""
    sizes: list[float | None] = []
    for node in nodes:
        if node.get("GPU", 0.0):
            names = [name.removeprefix(_ACCELERATOR) for name in node if name.startswith(_ACCELERATOR)]
            sizes += [least_memory(name) for name in names] or [None]
    known = [size for size in sizes if size is not None]
    return min(known) if known and len(known) == len(sizes) else None


def _cpus_of_one(nodes: Sequence[Node], workers: int) -> float:
    """All CPUs dealt out, as far as one node has them."""
    counts = [node.get("CPU", 0.0) for node in nodes]
    return max(1.0, min(max(counts, default=0.0), sum(counts) // workers))


def _fitting(nodes: Sequence[Node], cpus: float, gpus: float) -> int:
    """How many workers the nodes hold when nothing else runs on them."""
    needs = [(name, need) for name, need in (("CPU", cpus), ("GPU", gpus)) if need]
    return sum(int(min(node.get(name, 0.0) // need for name, need in needs)) for node in nodes)
