"""Container files without an engine, and `rayjob.yaml` and `claim.yaml` without Kubernetes: known fields, figures that fit."""

import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from omegaconf import OmegaConf

from pipeline.__main__ import main
from pipeline.config.label import LabelConfig
from pipeline.engines.settings import HfConfig
from pipeline.runtime.connection import PRIVATE_RAY
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


# Names of fields of KubeRay's API `ray.io/v1` and of Kubernetes' core `v1`: both drop or refuse one that is misspelt.
JOB = {
    "entrypoint", "submissionMode", "activeDeadlineSeconds", "backoffLimit", "shutdownAfterJobFinishes", "suspend",
    "ttlSecondsAfterFinished", "rayClusterSpec", "runtimeEnvYAML", "jobId", "metadata", "clusterSelector", "managedBy",
    "submitterConfig", "submitterPodTemplate", "entrypointNumCpus", "entrypointNumGpus", "entrypointResources",
    "deletionStrategy",
}  # fmt: skip
CLUSTER = {
    "rayVersion", "headGroupSpec", "workerGroupSpecs", "enableInTreeAutoscaling", "autoscalerOptions", "suspend", "managedBy",
    "headServiceAnnotations", "gcsFaultToleranceOptions", "upgradeStrategy", "authOptions",
}  # fmt: skip
HEAD = {"rayStartParams", "template", "serviceType", "headService", "enableIngress", "resources", "labels"}
WORKERS = {
    "groupName", "replicas", "minReplicas", "maxReplicas", "idleTimeoutSeconds", "rayStartParams", "template", "scaleStrategy",
    "numOfHosts", "suspend", "resources", "labels",
}  # fmt: skip
POD = {
    "automountServiceAccountToken", "securityContext", "tolerations", "containers", "volumes", "nodeSelector", "affinity",
    "initContainers", "serviceAccountName", "priorityClassName", "imagePullSecrets", "terminationGracePeriodSeconds",
}  # fmt: skip
CONTAINER = {
    "name", "image", "imagePullPolicy", "command", "args", "env", "envFrom", "ports", "resources", "volumeMounts",
    "securityContext", "lifecycle", "livenessProbe", "readinessProbe",
}  # fmt: skip
TOLERATION = {"key", "operator", "value", "effect", "tolerationSeconds"}
DAY = 24 * 60 * 60
MODES = {"K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"}
_QUANTITY = re.compile(r"\d+(?:\.\d+)?(?:m|[KMGTP]i?)?")
_GIB = re.compile(r"(\d+)Gi")


def _parsed(text: str) -> list[dict[str, Any]]:
    documents = [OmegaConf.to_container(OmegaConf.create(part)) for part in text.split("\n---\n")]
    return [
        {str(key): value for key, value in document.items()} for document in documents if isinstance(document, dict)
    ]


def _documents() -> list[dict[str, Any]]:
    return [each for name in ("claim.yaml", "rayjob.yaml") for each in _parsed((DOCKER / name).read_text("utf-8"))]


def _files_pod() -> dict[str, Any]:
    (pod,) = (document for document in _documents() if document["kind"] == "Pod")
    return pod


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


def test_ray_job_runs_a_real_label_command_and_has_a_gpu_for_every_worker() -> None:
    job = _ray_job()
    assert job["apiVersion"] == "ray.io/v1"
    words = shlex.split(job["spec"]["entrypoint"])
    assert words[:4] == ["python", "-m", "pipeline", "label"]
    settings = dict(word.split("=", 1) for word in words[4:])
    assert {"data.path", "policy.model", "run_dir"} <= settings.keys()
    assert settings["policy"] == "hf"
    assert all(_is_setting(name) for name in settings), settings
    assert settings["cluster.address"] == "auto"
    (group,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    (container,) = group["template"]["spec"]["containers"]
    assert group["replicas"] * int(container["resources"]["limits"]["nvidia.com/gpu"]) == int(
        settings["cluster.workers"]
    )


def test_ray_versions_agree_and_ray_asks_for_a_token() -> None:
    cluster = _ray_job()["spec"]["rayClusterSpec"]
    version = cluster["rayVersion"]
    assert cluster["authOptions"] == {"mode": "token"}
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


def test_the_pod_for_files_mounts_the_claim_as_the_user_of_the_job() -> None:
    pod = _files_pod()
    assert pod["apiVersion"] == "v1"
    spec = pod["spec"]
    assert spec["securityContext"] == _pods()[0]["securityContext"]
    assert spec["automountServiceAccountToken"] is False
    (container,) = spec["containers"]
    assert PINNED.fullmatch(container["image"])
    assert container["securityContext"] == _pods()[0]["containers"][0]["securityContext"]
    assert container["volumeMounts"] == [{"name": "data", "mountPath": "/data"}]
    (claim,) = (document for document in _documents() if document["kind"] == "PersistentVolumeClaim")
    assert spec["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}]
    _known(spec, POD)
    _known(container, CONTAINER)


def test_deleting_the_job_leaves_the_run_directory() -> None:
    assert [each["kind"] for each in _parsed((DOCKER / "rayjob.yaml").read_text("utf-8"))] == ["RayJob"]


def _at(commands: list[str], *words: str) -> int:
    (found,) = [at for at, line in enumerate(commands) if all(word in line for word in words)]
    return found


def test_the_steps_copy_the_problems_and_look_before_the_job_starts() -> None:
    commands = readme_commands()
    steps = [
        _at(commands, "kubectl create secret"),
        _at(commands, "kubectl apply -f docker/claim.yaml"),
        _at(commands, f"kubectl wait --for=condition=Ready pod/{_files_pod()['metadata']['name']}"),
        _at(commands, "kubectl cp problems.jsonl"),
        _at(commands, "sed ", "kubectl apply -f -"),
        _at(commands, "kubectl delete rayjob stepvalue-doctor"),
        _at(commands, "kubectl apply -f docker/rayjob.yaml"),
        _at(commands, "report.html"),
    ]
    assert steps == sorted(steps)
    settings = dict(word.split("=", 1) for word in shlex.split(_ray_job()["spec"]["entrypoint"])[4:])
    name = _files_pod()["metadata"]["name"]
    assert f" {name}:{settings['data.path']}" in commands[_at(commands, "kubectl cp problems.jsonl")]
    assert f" {name}:{settings['run_dir']}/report.html " in commands[_at(commands, "report.html")]


def test_doctor_runs_on_the_pods_and_with_the_settings_of_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    commands = readme_commands()
    edit = commands[_at(commands, "sed ", "kubectl apply -f -")].partition("|")[0]
    edited = subprocess.run(shlex.split(edit), cwd=DOCKER.parent, capture_output=True, text=True, check=True).stdout
    (doctor,) = _parsed(edited)
    job = _ray_job()
    words = shlex.split(doctor["spec"]["entrypoint"])
    assert words[:4] == ["python", "-m", "pipeline", "doctor"]
    assert main([*words[3:], "--cfg", "job"]) == 0, capsys.readouterr().err
    assert doctor["metadata"].pop("name") == "stepvalue-doctor"
    assert job["metadata"].pop("name") == "stepvalue-label"
    assert doctor["spec"].pop("backoffLimit") == 0, "a fault that doctor finds stays in another cluster"
    job["spec"].pop("backoffLimit")
    job["spec"]["entrypoint"] = job["spec"]["entrypoint"].replace(" label ", " doctor ")
    assert doctor == job


def test_ray_has_the_command_that_shows_the_lines_of_a_job() -> None:
    cli = pytest.importorskip("ray.dashboard.modules.job.cli")
    commands = readme_commands()
    words = shlex.split(commands[_at(commands, "ray job logs --address http://127.0.0.1:8265 --follow")])
    known = {name for parameter in cli.logs.params for name in parameter.opts}
    assert {word for word in words[words.index("logs") :] if word.startswith("--")} <= known
    (ports,) = (each["ports"] for pod in _pods() for each in pod["containers"] if "ports" in each)
    assert {"name": "dashboard", "containerPort": 8265} in ports


def _known(fields: dict[str, Any], names: set[str]) -> None:
    assert fields.keys() <= names, fields.keys() - names


def _quantities(found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        for key, value in found.items():
            if key in ("requests", "limits"):
                yield from value.values()
            elif key == "sizeLimit":
                yield value
            else:
                yield from _quantities(value)
    elif isinstance(found, list):
        for each in found:
            yield from _quantities(each)


def test_every_field_is_one_that_kuberay_and_kubernetes_know() -> None:
    job = _ray_job()
    assert job.keys() == {"apiVersion", "kind", "metadata", "spec"}
    _known(job["spec"], JOB)
    cluster = job["spec"]["rayClusterSpec"]
    _known(cluster, CLUSTER)
    _known(cluster["headGroupSpec"], HEAD)
    for group in cluster["workerGroupSpecs"]:
        _known(group, WORKERS)
    for pod in _pods():
        _known(pod, POD)
        for container in pod["containers"]:
            _known(container, CONTAINER)
        for toleration in pod.get("tolerations", []):
            _known(toleration, TOLERATION)
        for volume in pod["volumes"]:
            assert len(volume) == 2, f"a name and one source: {volume}"
            _known(volume, {"name", "emptyDir", "persistentVolumeClaim"})


def test_fields_have_the_types_that_kuberay_reads() -> None:
    spec = _ray_job()["spec"]
    assert spec["submissionMode"] in MODES
    for name in ("activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        assert isinstance(spec[name], int), name
        assert spec[name] > 0, name
    assert spec["activeDeadlineSeconds"] == DAY
    cluster = spec["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values()), "a map of strings"
    for group in cluster["workerGroupSpecs"]:
        assert 0 < group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    quantities = list(_quantities(_documents()))
    assert len(quantities) > 10
    assert all(isinstance(value, str) and _QUANTITY.fullmatch(value) for value in quantities), quantities


def test_ray_start_has_the_parameters() -> None:
    scripts = pytest.importorskip("ray.scripts.scripts")
    known = {name.lstrip("-") for parameter in scripts.start.params for name in parameter.opts}
    cluster = _ray_job()["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        assert group["rayStartParams"].keys() <= known


def test_workers_go_to_tainted_gpu_nodes_and_may_download_gated_models() -> None:
    _, worker = _pods()
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in worker["tolerations"]
    for pod in _pods():
        (container,) = pod["containers"]
        (token,) = [entry for entry in container["env"] if entry["name"] == "HF_TOKEN"]
        secret = token["valueFrom"]["secretKeyRef"]
        assert secret["optional"] is True
        text = (DOCKER / "rayjob.yaml").read_text("utf-8")
        assert f"create secret generic {secret['name']} --from-literal={secret['key']}=" in text


def test_no_pod_runs_engines_at_a_lower_priority() -> None:
    name = "RAY_worker_niceness"
    for pod in _pods():
        (container,) = pod["containers"]
        assert [entry["value"] for entry in container["env"] if entry["name"] == name] == [PRIVATE_RAY[name]]


def test_caches_of_the_image_lie_on_storage_of_the_node_and_shared_memory_fits_the_pod() -> None:
    image = (DOCKER / "gpu.Dockerfile").read_text("utf-8")
    caches = re.findall(r"(?:HF_HOME|VLLM_CACHE_ROOT|TRITON_CACHE_DIR|STEPVALUE_CACHE)=(\S+)", image)
    assert len(caches) == 4
    for pod in _pods():
        (container,) = pod["containers"]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert all(cache.startswith(mounts["cache"] + "/") for cache in caches)
        assert "medium" not in volumes["cache"]["emptyDir"], "the node's disk, not its memory"
        assert mounts["shm"] == "/dev/shm"
        assert volumes["shm"]["emptyDir"]["medium"] == "Memory"
        shared, memory = (
            int(_GIB.fullmatch(size)[1])  # type: ignore[index]
            for size in (volumes["shm"]["emptyDir"]["sizeLimit"], container["resources"]["limits"]["memory"])
        )
        assert shared < memory / 2, "it counts as memory of the pod"
