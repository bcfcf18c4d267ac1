"""What can be said of the container files without a container engine."""

import dataclasses
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from omegaconf import OmegaConf

from pipeline.config.label import LabelConfig
from pipeline.engines.settings import HfConfig

DOCKER = Path(__file__).parents[1] / "docker"
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


def _documents() -> list[dict[str, Any]]:
    texts = (DOCKER / "rayjob.yaml").read_text("utf-8").split("\n---\n")
    documents = [OmegaConf.to_container(OmegaConf.create(text)) for text in texts]
    return [
        {str(key): value for key, value in document.items()} for document in documents if isinstance(document, dict)
    ]


def _ray_job() -> dict[str, Any]:
    (job,) = (document for document in _documents() if document["kind"] == "RayJob")
    return job


def _pods() -> list[dict[str, Any]]:
    cluster = _ray_job()["spec"]["rayClusterSpec"]
    return [group["template"]["spec"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]


def _is_setting(name: str) -> bool:
    """Whether a dotted name leads to a field of the settings of `label`."""
    here: Any = LabelConfig
    if name.startswith("policy."):
        here, name = HfConfig, name.removeprefix("policy.")
    for part in name.split("."):
        if not dataclasses.is_dataclass(here):
            return False
        here = get_type_hints(here).get(part)
    return here is not None


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


def test_ray_job_runs_a_real_label_command() -> None:
    job = _ray_job()
    assert job["apiVersion"] == "ray.io/v1"
    words = shlex.split(job["spec"]["entrypoint"])
    assert words[:4] == ["python", "-m", "pipeline", "label"]
    settings = dict(word.split("=", 1) for word in words[4:])
    assert {"data.path", "policy.model", "run_dir"} <= settings.keys()
    assert settings["policy"] == "hf"
    assert all(_is_setting(name) for name in settings), settings
    assert settings["cluster.address"] == "auto"


def test_ray_job_has_a_gpu_for_every_worker() -> None:
    job = _ray_job()
    settings = dict(word.split("=", 1) for word in shlex.split(job["spec"]["entrypoint"])[4:])
    (group,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    (container,) = group["template"]["spec"]["containers"]
    assert group["replicas"] * int(container["resources"]["limits"]["nvidia.com/gpu"]) == int(
        settings["cluster.workers"]
    )


def test_ray_versions_agree() -> None:
    version = _ray_job()["spec"]["rayClusterSpec"]["rayVersion"]
    assert f"\nray=={version} " in (DOCKER.parent / "requirements-gpu.lock").read_text("utf-8")


def test_pods_are_pinned_unprivileged_and_share_the_claimed_volume() -> None:
    (claim,) = (document for document in _documents() if document["kind"] == "PersistentVolumeClaim")
    for pod in _pods():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert claim["metadata"]["name"] in [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["volumes"]
            if "persistentVolumeClaim" in volume
        ]
        for container in pod["containers"]:
            assert PINNED.fullmatch(container["image"]), container["image"]
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
            assert {mount["name"] for mount in container["volumeMounts"]} == {
                volume["name"] for volume in pod["volumes"]
            }
            assert container["resources"]["limits"].keys() >= {"cpu", "memory"}
