"""What can be said of the container files without a container engine."""

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from pipeline.__main__ import main
from tests.conftest import ROOT
from tests.lint.test_pins import GPU_LOCK, pins

DOCKER = ROOT / "docker"
MINUTES = 40
"""For all parts of `bench-gpu` on a CPU."""
DOCKERFILES = sorted(DOCKER.glob("*.Dockerfile"))
PINNED = re.compile(r"[\w./-]+:v?\d+\.\d+\.\d+[\w.-]*")

every_dockerfile = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)


def _instructions(path: Path) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile with their arguments; continued lines are joined, comments dropped."""
    lines = [
        line for line in path.read_text("utf-8").splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.strip().partition(" ") for line in joined.split("\n"))]


def test_both_images_are_there() -> None:
    assert [path.name for path in DOCKERFILES] == ["cpu.Dockerfile", "gpu.Dockerfile"]


@every_dockerfile
def test_base_image_is_pinned(path: Path) -> None:
    bases = [rest.split()[0] for word, rest in _instructions(path) if word == "FROM"]
    assert bases
    assert all(PINNED.fullmatch(base) for base in bases), bases


@every_dockerfile
def test_image_does_not_run_as_root(path: Path) -> None:
    users = [rest for word, rest in _instructions(path) if word == "USER"]
    assert users
    assert all(int(user.partition(":")[0]) > 0 for user in users), "a number, so that runAsNonRoot can check it"


def test_the_gpu_image_loads_libraries_for_older_drivers() -> None:
    settings = [rest for word, rest in _instructions(DOCKER / "gpu.Dockerfile") if word == "ENV"]
    assert "VLLM_ENABLE_CUDA_COMPATIBILITY=1" in " ".join(settings).split()


@every_dockerfile
def test_what_is_copied_exists_and_the_entrypoint_is_ours(path: Path) -> None:
    instructions = _instructions(path)
    for word, rest in instructions:
        if word == "COPY":
            *sources, _ = [part for part in rest.split() if not part.startswith("--")]
            for source in sources:
                # The README is written with the rest of the documents and is always part of a checkout.
                assert source == "README.md" or (DOCKER.parent / source).exists(), source
    assert dict(instructions)["ENTRYPOINT"] == '["tini", "--", "stepvalue-entrypoint"]'


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["label", "data=sample"], "stepvalue label data=sample"),
        (["label", "data.path=/data/two words.jsonl"], "stepvalue label data.path=/data/two words.jsonl"),
        (["ray", "start"], "ray start"),
        (["bench-gpu", "qwen2.5-1.5b"], "python -u -m tests.bench.gpu qwen2.5-1.5b"),
        ([], "stepvalue"),
    ],
)
def test_entrypoint_passes_its_words_on(tmp_path: Path, arguments: list[str], expected: str) -> None:
    for name in ("stepvalue", "ray", "python"):
        program = tmp_path / name
        program.write_text('#!/bin/sh\necho "$(basename "$0")" "$@" $$\n')
        program.chmod(0o755)
    child = subprocess.Popen(
        ["/bin/sh", str(DOCKER / "entrypoint.sh"), *arguments],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    output, _ = child.communicate(timeout=30)
    assert child.returncode == 0
    assert output.split() == [*expected.split(), str(child.pid)], "the same process: signals reach it"


def readme_commands() -> list[str]:
    """The lines of code of the README, with continued lines joined."""
    blocks = re.findall(r"(?ms)^```\n(.*?)^```$", (DOCKER / "README.md").read_text("utf-8"))
    return [line for block in blocks for line in block.replace("\\\n", "").splitlines()]


def test_the_commands_of_containers_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [shlex.split(line, comments=True) for line in readme_commands() if line.startswith("docker run ")]
    words = [each[next(at for at, word in enumerate(each) if PINNED.fullmatch(word)) + 1 :] for each in runs]
    ours = [each for each in words if each[0] not in ("python", "bench-gpu")]
    assert {each[0] for each in ours} == {"doctor", "label"}
    for each in ours:
        assert main([*each, "--cfg", "job"]) == 0, capsys.readouterr().err


def test_the_data_folder_belongs_to_the_user_of_the_images() -> None:
    (made,) = {line.split("#")[0].strip() for line in readme_commands() if "install -d" in line}
    user = re.escape(made.split()[-2])
    assert all(re.search(rf"(?m)^USER {user}:{user}$", path.read_text("utf-8")) for path in DOCKERFILES)


def test_ray_is_started_so_that_its_workers_keep_their_priority_and_strangers_are_refused() -> None:
    commands = readme_commands()
    starts = [at for at, line in enumerate(commands) if line.startswith("ray start ")]
    assert len(starts) == 2
    (known,) = (line.split("#")[0].split() for line in commands[: starts[0]] if line.startswith("export RAY_"))
    assert {"RAY_worker_niceness=0", "RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN_PATH=/shared/ray-token"} <= set(known)
    assert any("umask 077" in line and line.split(")")[0].endswith(" /shared/ray-token") for line in commands)


@pytest.mark.slow
def test_bench_gpu_needs_no_package_and_no_file_that_the_gpu_image_lacks(tmp_path: Path) -> None:
    """What its imports load, in a process that has nothing but what the image copies."""
    for word, rest in _instructions(DOCKER / "gpu.Dockerfile"):
        *sources, target = rest.split()
        if word == "COPY" and not target.startswith("/"):
            for source in sources:
                place = tmp_path / target / Path(source).name if target.endswith("/") else tmp_path / target
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(DOCKER.parent / source)
    code = (
        "import sys, tests.bench.gpu, tests.bench.gpu_parts\n"
        "print(*{name.partition('.')[0] for name, module in sys.modules.items() if getattr(module, '__file__', None)})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    locked = {name.replace("_", "-") for name in pins(GPU_LOCK.read_text("utf-8"))}
    owners = packages_distributions()
    foreign = {
        name: owners[name] for name in done.stdout.split() if name in owners and name not in ("pipeline", "tests")
    }
    assert {"polars", "psutil"} <= foreign.keys()
    missing = {
        name: own for name, own in foreign.items() if not any(each.lower().replace("_", "-") in locked for each in own)
    }
    assert not missing


@pytest.mark.nightly
@pytest.mark.model
@pytest.mark.timeout(60 * MINUTES)
def test_all_parts_of_bench_gpu_run_on_a_cpu(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.gpu", "small", "--out", str(tmp_path), "--minutes", str(MINUTES - 1)],
        cwd=DOCKER.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    stored = json.loads((tmp_path / "bench-gpu.json").read_text())
    assert {part["state"] for part in stored["parts"]} == {"done"}, done.stdout + done.stderr
    assert done.returncode == 0
