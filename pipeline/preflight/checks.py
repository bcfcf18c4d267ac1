"""Judges what machines have against what a run needs.

Drivers: CUDA 13 needs driver 580 or newer, CUDA 12 needs 525 (table 2 of NVIDIA's CUDA compatibility guide). On data centre
GPUs an older driver can load the newer CUDA's compatibility libraries, if the machine has them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from pipeline.core.formatting import format_count
from pipeline.core.hardware import VISIBLE_DEVICES
from pipeline.preflight.machine import COMPATIBILITY, Machine


class Level(Enum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A line of the table. `remedy` is empty where all is well, and where the text names it."""

    check: str
    level: Level
    text: str
    remedy: str = ""


def ok(check: str, text: str) -> Finding:
    return Finding(check=check, level=Level.OK, text=text)


def warning(check: str, text: str, remedy: str) -> Finding:
    return Finding(check=check, level=Level.WARNING, text=text, remedy=remedy)


def failed(check: str, text: str, remedy: str = "") -> Finding:
    return Finding(check=check, level=Level.FAILED, text=text, remedy=remedy)


def counted(findings: Sequence[Finding]) -> Iterator[str]:
    """The last line of the table, in parts."""
    numbers = Counter(finding.level for finding in findings)
    if numbers[Level.FAILED]:
        yield f"{numbers[Level.FAILED]} failed"
    if numbers[Level.WARNING]:
        yield format_count(numbers[Level.WARNING], "warning")


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
MODEL = "model"
"""The model's folder among the paths that nodes must see."""
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
        yield _silent(silent, others=bool(machines))
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
    elif needs.unasked_cpus and (idle := _hosts(machine for machine in machines if machine.gpus)):
        yield warning(
            "GPUs",
            f"{idle} has GPUs, but the installed build of vLLM runs on CPUs",
            "install the gpu extra in an environment of its own, or set cluster.gpus_per_worker=0 if CPUs are meant",
        )
    for what, path in needs.paths.items():
        yield _path(machines, what, path)


def judge_disks(machines: Sequence[Machine], *, gpus: bool, download: float) -> Finding:
    """Whether the caches have space for `download` bytes of weights, unless they have them, and with `gpus` for kernels."""
    machines = [machine for machine in machines if machine.answers and (machine.gpus or not gpus)]
    little, short = list[str](), set[str]()
    for machine in machines:
        wanted = {
            "models": 0.0 if machine.has_models else download,
            "compiled kernels": float(KERNEL_BYTES) if gpus else 0.0,
        }
        for name, (folder, free) in machine.caches.items():
            if free < wanted.get(name, 0.0):
                short.add(machine.host)
                little.append(
                    f"{machine.host}: {free / _GB:,.1f} GB free in {folder}, and {name} need {wanted[name] / _GB:,.1f} GB"
                )
    if little:
        return _problem(
            "disk",
            "; ".join(little),
            "free space, or move the caches to a larger disk of the node (HF_HOME: models, VLLM_CACHE_ROOT: kernels)",
            others=any(machine.host not in short for machine in machines),
        )
    least = min((free for machine in machines for _, free in machine.caches.values()), default=0)
    return ok("disk", f"at least {least / _GB:,.0f} GB free for caches{_on_all(machines)}")


def _problem(check: str, text: str, remedy: str, *, others: bool) -> Finding:
    """A warning where `others` can do the work: a run goes on without a place that fails. Else a failed check."""
    return (warning if others else failed)(check, text, remedy)


def _hosts(machines: Iterable[Machine]) -> str:
    """Their names. Several nodes may be on one host."""
    return ", ".join(dict.fromkeys(machine.host for machine in machines))


def _silent(hosts: Sequence[str], *, others: bool) -> Finding:
    return _problem(
        "nodes",
        f"no answer from {', '.join(dict.fromkeys(hosts))}",
        "check `ray status`, and that this package and its environment are installed there",
        others=others,
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
    if for_cpus := [machine for machine in machines if machine.torch_cuda is None]:
        return _problem(
            "driver",
            f"torch is built for CPUs on {_hosts(for_cpus)}",
            "install the gpu extra there, in an environment of its own",
            others=len(for_cpus) < len(machines),
        )
    old = [machine for machine in machines if _major(machine.driver) < LEAST_DRIVER.get(_major(machine.torch_cuda), 0)]
    if old:
        compatible = all(machine.compatibility for machine in old)
        needed = "; ".join(
            f"{machine.host}: driver {machine.driver}, and CUDA {machine.torch_cuda} of torch needs "
            f"{LEAST_DRIVER[_major(machine.torch_cuda)]}"
            for machine in old
        )
        return _problem(
            "driver",
            needed + (f", or the libraries that {COMPATIBILITY}=1 loads" if compatible else ""),
            "install a newer NVIDIA driver. Data centre GPUs can keep an older one with the package cuda-compat and "
            f"{COMPATIBILITY}=1",
            others=compatible or len(old) < len(machines),
        )
    drivers = sorted({machine.driver for machine in machines if machine.driver})
    cudas = sorted({machine.torch_cuda for machine in machines if machine.torch_cuda})
    return ok("driver", f"driver {', '.join(drivers) or '-'}, CUDA {', '.join(cudas) or '-'} of torch")


def _major(version: str | None) -> int:
    number = (version or "").split(".")[0]
    return int(number) if number.isdecimal() else 0


def _devices(machines: Sequence[Machine], parts: int) -> Finding:
    if not any(machine.gpus for machine in machines):
        if hidden := _hosts(machine for machine in machines if machine.hidden):
            return failed(
                "GPUs",
                f"{VISIBLE_DEVICES} hides all GPUs of {hidden}",
                f"unset {VISIBLE_DEVICES} there, and start Ray again",
            )
        return failed(
            "GPUs",
            "nvidia-smi finds no GPU on any node",
            "check `nvidia-smi`; in a container give --gpus all, in a pod request nvidia.com/gpu. Without GPUs install "
            "the cpu extra, or set cluster.gpus_per_worker=0",
        )
    if all(len(machine.gpus) < parts for machine in machines):
        return failed(
            "GPUs",
            f"a model needs {parts} GPUs of one node, and no node has as many",
            "lower policy.tensor_parallel, or quantize the model (policy.quantization=fp8)",
        )
    lost = [
        machine
        for machine in machines
        if not _slices(machine) and machine.resources.get("GPU", 0.0) > len(machine.gpus)
    ]
    if lost:
        counts = (
            f"{machine.resources['GPU']:g} on {machine.host}, and {len(machine.gpus)} can be seen there"
            for machine in lost
        )
        return warning(
            "GPUs",
            f"Ray counts more GPUs than there are: {'; '.join(counts)}",
            f"check `nvidia-smi` and {VISIBLE_DEVICES} there (a GPU that the driver has lost, a driver that is not loaded), "
            "then start Ray again",
        )
    sliced = _hosts(machine for machine in machines if _slices(machine))
    if sliced:
        return warning(
            "GPUs",
            f"{sliced}: GPUs are divided by MIG, and an engine gets one slice",
            "set policy.device.memory to a slice's memory, or disable MIG (`nvidia-smi -mig 0`)",
        )
    kinds = _grouped([machine for machine in machines if machine.gpus], _kinds)
    return ok("GPUs", _by_value(kinds))


def _slices(machine: Machine) -> bool:
    return any(gpu.sliced for gpu in machine.gpus)


def _kinds(machine: Machine) -> str:
    names = [gpu.name for gpu in machine.gpus]
    kinds = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
    return f"{kinds} ({machine.hidden} more hidden by {VISIBLE_DEVICES})" if machine.hidden else kinds


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
        return _problem(
            "GPU memory",
            f"{'; '.join(full)}; engines take {share:.0%}",
            "end other processes there (see nvidia-smi), hide these GPUs from Ray, or lower policy.memory_share",
            others=len(full) < len(known),
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
        return _problem(
            "shared memory",
            f"/dev/shm is too small on {'; '.join(little)}",
            "in a container give --shm-size (docker), or mount an emptyDir of medium Memory at /dev/shm (Kubernetes)",
            others=len(little) < len(machines),
        )
    return ok("shared memory", "enough on every node with GPUs")


def _compilers(machines: Sequence[Machine], *, filtered: bool) -> Finding:
    missing = (
        (
            [machine for machine in machines if not machine.c_compiler],
            "no C compiler",
            "Triton compiles its kernels' launchers when vLLM starts",
            "install gcc there (Debian: apt install gcc)",
        ),
        (
            [machine for machine in machines if not machine.python_headers],
            "no Python.h",
            "Triton compiles with Python's headers when vLLM starts",
            "install the headers of that Python there (Debian: apt install python3-dev), or use uv's Python, which has them",
        ),
    )
    for without, what, use, remedy in missing:
        if without:
            text = f"{what} on {_hosts(without)}: {use}"
            return _problem("compiler", text, remedy, others=len(without) < len(machines))
    if filtered and not all(machine.cuda_compiler for machine in machines):
        return ok(
            "compiler",
            "no nvcc: top_p and top_k are sampled by vLLM's own code instead of FlashInfer's",
        )
    return ok("compiler", "a C compiler on every node with GPUs")


def _path(machines: Sequence[Machine], what: str, path: str) -> Finding:
    blind = _hosts(machine for machine in machines if not machine.sees.get(path))
    if blind:
        # A worker without the model goes elsewhere; one without the run directory would write where nobody reads.
        others = what == MODEL and any(machine.sees.get(path) for machine in machines)
        remedy = "use a path that all nodes mount under the same name"
        return _problem(
            what,
            f"{path} does not exist on {blind}",
            remedy + ("" if what == MODEL else ", or the URL of a bucket (s3://, gs://)"),
            others=others,
        )
    return ok(what, f"{path} is seen{_on_all(machines) or ' here'}")


def _grouped(machines: Sequence[Machine], of: Callable[[Machine], str]) -> Mapping[str, list[str]]:
    """Value -> the hosts that have it."""
    found: dict[str, list[str]] = defaultdict(list)
    for machine in machines:
        if machine.host not in found[of(machine)]:
            found[of(machine)].append(machine.host)
    return found


def _by_value(groups: Mapping[str, list[str]]) -> str:
    return ", ".join(f"{value or 'none'} on {', '.join(hosts)}" for value, hosts in groups.items())


def _on_all(machines: Sequence[Machine]) -> str:
    return f", on all {format_count(len(machines), 'node')}" if len(machines) > 1 else ""
