"""Judges what machines have against what a run needs. Pure.

Drivers: CUDA 13 needs driver 580 or newer, CUDA 12 needs 525 (table 2 of NVIDIA's CUDA compatibility guide). On data centre
GPUs an older driver can load the newer CUDA's compatibility libraries, if the machine has them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.core.formatting import format_count
from pipeline.preflight.findings import Finding, failed, ok, warning
from pipeline.preflight.machine import COMPATIBILITY, DEVICES, Machine

LEAST_DRIVER = {12: 525, 13: 580}
"""CUDA's major version -> the driver's."""
SHARED_PER_ENGINE = 2**30
"""Shared memory that the processes of an engine use for messages, in bytes."""
SHARED_PER_PART = 2 * 2**30
"""The same for each GPU of a model that is spread over several: NCCL's buffers too."""
CLOCK_SECONDS = 5.0
"""Clocks that differ by more make times in a run's files hard to read."""
KERNEL_BYTES = 5 * 2**30
"""Free space for compiled kernels and CUDA graphs."""
_GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What the workers of a run need of their nodes. `gpus`: whether they run on GPUs. `unasked_cpus`: they run on CPUs only
    because the build of vLLM does. `share`: of a GPU's memory that its engines take together. `parts`: GPUs of a model.
    `filtered`: whether sampling cuts the distribution by top_p or top_k. `paths`: what a path is -> the path that all nodes
    see."""

    gpus: bool = False
    unasked_cpus: bool = False
    share: float = 0.9
    parts: int = 1
    filtered: bool = False
    paths: Mapping[str, str] = field(default_factory=dict)


def judge(machines: Sequence[Machine], needs: Needs) -> Iterator[Finding]:
    """The findings about the nodes, in the order of the table."""
    silent = [machine.host for machine in machines if not machine.answers]
    machines = [machine for machine in machines if machine.answers]
    if silent:
        yield _silent(silent)
    if not machines:
        return
    yield _versions(machines)
    yield _clocks(machines)
    if needs.gpus:
        yield _devices(machines, needs.parts)
        if with_gpus := [machine for machine in machines if machine.gpus]:
            yield _drivers(with_gpus)
            yield _memory(with_gpus, needs.share)
            yield _shared(with_gpus, needs.parts)
            yield _compilers(with_gpus, filtered=needs.filtered)
    elif needs.unasked_cpus and (idle := [machine.host for machine in machines if machine.gpus]):
        yield _unused(idle)
    for what, path in needs.paths.items():
        yield _path(machines, what, path)


def judge_disks(machines: Sequence[Machine], *, gpus: bool, download: float) -> Finding:
    """Whether the caches have space for `download` bytes of the model, and with `gpus` for compiled kernels."""
    machines = [machine for machine in machines if machine.answers]
    wanted = {"models": download, "compiled kernels": float(KERNEL_BYTES) if gpus else 0.0}
    little = [
        f"{machine.host}: {free / _GB:,.1f} GB free in {folder}, and {name} need {wanted[name] / _GB:,.1f} GB"
        for machine in machines
        for name, (folder, free) in machine.caches.items()
        if free < wanted.get(name, 0.0)
    ]
    if little:
        return failed(
            "disk",
            "; ".join(little),
            "free space, or move the caches to a larger disk of the node (HF_HOME: models, VLLM_CACHE_ROOT: kernels)",
        )
    least = min((free for machine in machines for _, free in machine.caches.values()), default=0)
    return ok("disk", f"at least {least / _GB:,.0f} GB free for caches{_on_all(machines)}")


def _unused(hosts: Sequence[str]) -> Finding:
    return warning(
        "GPUs",
        f"{', '.join(hosts)} has GPUs, but the installed build of vLLM runs on CPUs",
        "install the gpu extra in an environment of its own, or set cluster.gpus_per_worker=0 if CPUs are meant",
    )


def _silent(hosts: Sequence[str]) -> Finding:
    return failed(
        "nodes",
        f"no answer from {', '.join(hosts)}",
        "check `ray status`, and that this package and its environment are installed there",
    )


def _versions(machines: Sequence[Machine]) -> Finding:
    names: dict[str, Callable[[Machine], str]] = {"Python": lambda machine: machine.python} | {
        name: _package(name) for name in dict.fromkeys(name for machine in machines for name in machine.packages)
    }
    differing = [
        f"{name} {_by_value(values)}" for name, of in names.items() if len(values := _grouped(machines, of)) > 1
    ]
    if differing:
        return failed(
            "versions",
            "; ".join(differing),
            "install the same Python and the same packages on all nodes: the lock of the project, or one image",
        )
    has = [f"{name} {version}" for name, of in names.items() if (version := of(machines[0]))]
    return ok("versions", f"{', '.join(has)}{_on_all(machines)}")


def _package(name: str) -> Callable[[Machine], str]:
    return lambda machine: machine.packages.get(name, "")


def _clocks(machines: Sequence[Machine]) -> Finding:
    apart = max(machine.clock for machine in machines) - min(machine.clock for machine in machines)
    if apart > CLOCK_SECONDS:
        return warning(
            "clocks",
            f"the nodes' clocks differ by {apart:,.0f} s",
            "synchronise them (chrony, NTP): `status` judges a run by times that its node wrote",
        )
    return ok("clocks", f"within {apart:.1f} s of each other{_on_all(machines)}")


def _drivers(machines: Sequence[Machine]) -> Finding:
    problems = []
    for machine in machines:
        least = LEAST_DRIVER.get(int((machine.torch_cuda or "0").split(".")[0]))
        driver = int((machine.driver or "0").split(".")[0])
        if machine.torch_cuda is None:
            problems.append(f"{machine.host}: torch is built for CPUs")
        elif least is not None and driver < least:
            problems.append(
                f"{machine.host}: driver {machine.driver}, and CUDA {machine.torch_cuda} of torch needs {least}"
            )
    if problems:
        compatible = all(machine.compatibility for machine in machines)
        judged = warning if compatible else failed
        return judged(
            "driver",
            "; ".join(problems) + (f", or the libraries that {COMPATIBILITY}=1 loads" if compatible else ""),
            "install a newer NVIDIA driver, and the gpu extra in an environment of its own. Data centre GPUs can keep "
            "an older driver with the package cuda-compat and VLLM_ENABLE_CUDA_COMPATIBILITY=1",
        )
    drivers = sorted({machine.driver for machine in machines if machine.driver})
    cudas = sorted({machine.torch_cuda for machine in machines if machine.torch_cuda})
    return ok(
        "driver",
        f"driver {', '.join(drivers) or '-'}, CUDA {', '.join(cudas) or '-'} of torch",
    )


def _devices(machines: Sequence[Machine], parts: int) -> Finding:
    if not any(machine.gpus for machine in machines):
        if hidden := [machine.host for machine in machines if machine.hidden]:
            return failed(
                "GPUs",
                f"{DEVICES} hides all GPUs of {', '.join(hidden)}",
                f"unset {DEVICES} there, and start Ray again",
            )
        return failed(
            "GPUs",
            "nvidia-smi finds no GPU on any node",
            "check `nvidia-smi`; in a container give --gpus all, in a pod request nvidia.com/gpu. Without GPUs install "
            "the cpu extra, or set cluster.gpus_per_worker=0",
        )
    sliced = [machine.host for machine in machines if any(gpu.sliced for gpu in machine.gpus)]
    if sliced:
        return warning(
            "GPUs",
            f"{', '.join(sliced)}: GPUs are divided by MIG, and an engine gets one slice",
            "set policy.device.memory to a slice's memory, or disable MIG (`nvidia-smi -mig 0`)",
        )
    if all(len(machine.gpus) < parts for machine in machines):
        return failed(
            "GPUs",
            f"a model needs {parts} GPUs of one node, and no node has as many",
            "lower policy.tensor_parallel, or quantize the model (policy.quantization=fp8)",
        )
    kinds = _grouped([machine for machine in machines if machine.gpus], _kinds)
    return ok("GPUs", _by_value(kinds))


def _kinds(machine: Machine) -> str:
    names = [gpu.name for gpu in machine.gpus]
    kinds = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
    return f"{kinds} ({machine.hidden} more hidden by {DEVICES})" if machine.hidden else kinds


def _memory(machines: Sequence[Machine], share: float) -> Finding:
    known = [
        (machine.host, gpu, gpu.memory, gpu.free)
        for machine in machines
        for gpu in machine.gpus
        if not gpu.sliced and gpu.memory is not None and gpu.free is not None
    ]
    full = [
        f"{host}, GPU {gpu.number}: {free / _GB:,.1f} of {memory / _GB:,.1f} GB free"
        for host, gpu, memory, free in known
        if free < share * memory
    ]
    if full:
        return failed(
            "GPU memory",
            f"{'; '.join(full)}; engines take {share:.0%}",
            "end other processes there (see nvidia-smi), hide these GPUs from Ray, or lower policy.memory_share",
        )
    if len(known) < sum(len(machine.gpus) for machine in machines):
        return ok("GPU memory", f"not known for all GPUs; where it is, the {share:.0%} that engines take are free")
    return ok("GPU memory", f"{share:.0%}, which engines take, are free everywhere")


def _shared(machines: Sequence[Machine], parts: int) -> Finding:
    little = []
    for machine in machines:
        wanted = len(machine.gpus) * (SHARED_PER_PART if parts > 1 else SHARED_PER_ENGINE)
        if machine.shared < wanted:
            little.append(f"{machine.host}: {machine.shared / _GB:,.2f} of {wanted / _GB:,.1f} GB")
    if little:
        return failed(
            "shared memory",
            f"/dev/shm is too small on {'; '.join(little)}",
            "in a container give --shm-size (docker), or mount an emptyDir of medium Memory at /dev/shm (Kubernetes)",
        )
    return ok("shared memory", "enough on every node with GPUs")


def _compilers(machines: Sequence[Machine], *, filtered: bool) -> Finding:
    without = [machine.host for machine in machines if not machine.c_compiler]
    if without:
        return failed(
            "compiler",
            f"no C compiler on {', '.join(without)}: Triton compiles its kernels' launchers when vLLM starts",
            "install gcc there (Debian: apt install gcc)",
        )
    without = [machine.host for machine in machines if not machine.python_headers]
    if without:
        return failed(
            "compiler",
            f"no Python.h on {', '.join(without)}: Triton compiles with Python's headers when vLLM starts",
            "install the headers of that Python there (Debian: apt install python3-dev), or use uv's Python, which has them",
        )
    if filtered and not all(machine.cuda_compiler for machine in machines):
        return ok(
            "compiler",
            "no nvcc: top_p and top_k are sampled by vLLM's own code instead of FlashInfer's",
        )
    return ok("compiler", "a C compiler on every node with GPUs")


def _path(machines: Sequence[Machine], what: str, path: str) -> Finding:
    blind = [machine.host for machine in machines if not machine.sees.get(path)]
    if blind:
        return failed(
            what,
            f"{path} does not exist on {', '.join(blind)}",
            "use a path that all nodes mount under the same name"
            + ("" if what == "model" else ", or the URL of a bucket (s3://, gs://)"),
        )
    return ok(what, f"{path} is seen{_on_all(machines) or ' here'}")


def _grouped(machines: Sequence[Machine], of: Callable[[Machine], str]) -> Mapping[str, list[str]]:
    """Value -> the hosts that have it."""
    found: dict[str, list[str]] = defaultdict(list)
    for machine in machines:
        found[of(machine)].append(machine.host)
    return found


def _by_value(groups: Mapping[str, list[str]]) -> str:
    return ", ".join(f"{value or 'none'} on {', '.join(hosts)}" for value, hosts in groups.items())


def _on_all(machines: Sequence[Machine]) -> str:
    return f", on all {format_count(len(machines), 'node')}" if len(machines) > 1 else ""
