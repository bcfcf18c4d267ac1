"""Determines the number of workers and the resources of each, from the resources of the cluster's nodes. Pure.

All GPUs of a worker are on one node. A model that fits on one GPU gets one GPU per worker. A larger model is spread over
several GPUs of a node (see `roofline`). With a fraction of a GPU per worker, several workers share each GPU. Whether workers
use GPUs is decided by the settings and the policy, so a GPU node that has not joined yet changes nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.config.label import ClusterConfig
from pipeline.core.errors import ClusterError, UsageError
from pipeline.core.formatting import format_count
from pipeline.core.hardware import least_memory
from pipeline.engines.base import OnDevices

Node = Mapping[str, float]
"""The resources of a Ray node, by name."""
ACCELERATOR = "accelerator_type:"
"""The beginning of the names of Ray's resources that tell what kinds of GPUs a node has."""
ROUNDING = 1e-9
"""10 workers with 0.1 of a GPU each fit on it, although 1 // 0.1 is 9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The number of workers, the CPUs and GPUs of each, and the number of GPUs that the model is spread over."""

    workers: int
    cpus: float
    gpus: float
    tensor_parallel: int


def share_of(nodes: Sequence[Node], config: ClusterConfig, policy: OnDevices) -> Share:
    """The share of each worker, with defaults filled in.

    Raises ClusterError if the workers do not fit on the cluster, or the model does not fit on any node, which more or other
    nodes would change, and UsageError for settings that exclude each other.
    """
    check_settings(config, policy)
    gpus, parts = config.gpus_per_worker, policy.given_tensor_parallel()
    on_gpus = uses_gpus(nodes, config, policy)
    if parts is None and gpus is not None:
        parts = max(1, int(gpus))
    elif parts is None:
        most = int(max((node.get("GPU", 0.0) for node in nodes), default=0.0))
        parts = policy.choose_tensor_parallel(most, _memory(nodes)) if on_gpus and most else 1
    if gpus is None:
        gpus = float(parts) if on_gpus else 0.0
        policy.check_gpus(gpus)
    cpus = config.cpus_per_worker
    workers = config.workers or (max(1, _fitting(nodes, cpus or 1.0, gpus)) if gpus else 1)
    if cpus is None:
        cpus = 1.0 if gpus or not policy.loads_model else _cpus_of_one(nodes, workers)
    if (fitting := _fitting(nodes, cpus, gpus)) < workers:
        raise ClusterError(
            f"{format_count(workers, 'worker')} of {cpus_and_gpus(cpus, gpus)} {'each do' if workers > 1 else 'does'} not fit: "
            f"the cluster's nodes can hold {fitting} ({resources_of(nodes)}); {_remedy(nodes, workers, cpus, gpus)}"
        )
    return Share(workers=workers, cpus=cpus, gpus=gpus, tensor_parallel=parts)


def check_settings(config: ClusterConfig, policy: OnDevices) -> None:
    """Raise UsageError where the GPUs per worker that the settings give are too few for the policy, on any nodes."""
    gpus, parts = config.gpus_per_worker, policy.given_tensor_parallel()
    if gpus is None:
        return
    if gpus and parts is not None and parts > gpus:
        raise UsageError(
            f"policy.tensor_parallel={parts} spreads the model over more GPUs than a worker has with "
            f"cluster.gpus_per_worker={gpus:g}: set cluster.gpus_per_worker={parts}, or leave it out"
        )
    policy.check_gpus(gpus)


def uses_gpus(nodes: Sequence[Node], config: ClusterConfig, policy: OnDevices) -> bool:
    """Whether workers get GPUs: as `cluster.gpus_per_worker` says, else as the policy says, else where there are any."""
    if config.gpus_per_worker is not None:
        return config.gpus_per_worker > 0
    found = policy.uses_gpus()
    return any(node.get("GPU", 0.0) for node in nodes) if found is None else found


def demand(config: ClusterConfig, policy: OnDevices, nodes: Sequence[Node]) -> tuple[Node, int]:
    """What to ask an autoscaler for while the nodes are too few: what a worker needs, as far as known, and their number."""
    gpus = config.gpus_per_worker
    if gpus is None:
        gpus = float(policy.given_tensor_parallel() or 1) if uses_gpus(nodes, config, policy) else 0.0
    needs = {"CPU": config.cpus_per_worker or 1.0, "GPU": gpus}
    return {name: need for name, need in needs.items() if need}, config.workers or 1


def resources_of(nodes: Sequence[Node]) -> str:
    """The CPUs, GPUs and nodes of a cluster, as a phrase."""
    cpus, gpus = (sum(node.get(name, 0.0) for node in nodes) for name in ("CPU", "GPU"))
    return f"{_amount(cpus, 'CPU')} and {_amount(gpus, 'GPU')} on {format_count(len(nodes), 'node')}"


def cpus_and_gpus(cpus: float, gpus: float) -> str:
    """What a worker has, as a phrase. Numbers may have fractions; a worker without GPUs has CPUs alone."""
    return f"{_amount(cpus, 'CPU')} and {_amount(gpus, 'GPU')}" if gpus else _amount(cpus, "CPU")


def _amount(number: float, name: str) -> str:
    return f"{number:g} {name if number == 1 else name + 's'}"


def unused_gpus(nodes: Sequence[Node], taken: Share, config: ClusterConfig) -> str:
    """A sentence about GPUs that no worker gets although nobody said so. Empty if there are none."""
    there = sum(node.get("GPU", 0.0) for node in nodes)
    used = taken.workers * taken.gpus
    if not taken.gpus or config.workers is not None or there - used < 1:
        return ""
    return (
        f"{format_count(taken.workers, 'worker')} {'uses' if taken.workers == 1 else 'use'} {used:g} of the cluster's "
        f"{there:g} GPUs: each needs {cpus_and_gpus(taken.cpus, taken.gpus)} of one node ({resources_of(nodes)})"
    )


def _memory(nodes: Sequence[Node]) -> float | None:
    """Memory in bytes of the cluster's smallest GPU; None if the memory of any GPU is unknown."""
    sizes: list[float | None] = []
    for node in nodes:
        if node.get("GPU", 0.0):
            names = [name.removeprefix(ACCELERATOR) for name in node if name.startswith(ACCELERATOR)]
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
    return sum(min(_held(node.get(name, 0.0), need) for name, need in needs) for node in nodes)


def _remedy(nodes: Sequence[Node], workers: int, cpus: float, gpus: float) -> str:
    """What helps where the workers do not fit: less of what is too little by itself, as far as a worker can do with less."""
    too_much = {
        "cluster.workers": _fitting(nodes, cpus, gpus) > 0,
        "cluster.cpus_per_worker": _fitting(nodes, cpus, 0.0) < workers and any(node.get("CPU") for node in nodes),
        "cluster.gpus_per_worker": gpus > 0 and _fitting(nodes, 0.0, gpus) < workers,
    }
    lower = [name for name, helps in too_much.items() if helps]
    if not lower:
        return "use larger nodes"
    *others, last = lower
    return f"lower {', '.join(others)}{' or ' if others else ''}{last}, or use more or larger nodes"


def _held(have: float, need: float) -> int:
    """How often `need` fits into `have`. A need below 1 is met by one device, not by parts of two."""
    if need >= 1:
        return int(have // need)
    return int(have) * math.floor(1 / need + ROUNDING)
