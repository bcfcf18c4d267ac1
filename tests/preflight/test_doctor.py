"""`doctor` on this machine and on a Ray cluster."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from pipeline.__main__ import main
from pipeline.engines import hub
from pipeline.engines.hugging_face import load_tokenizer
from pipeline.engines.registry import policy_for
from pipeline.preflight.checks import Finding, Level
from pipeline.preflight.machine import Gpu, Machine, Nodes, look, this_machine
from pipeline.preflight.run import node_warnings, preflight
from tests.checkout import ROOT
from tests.settings import compose_label

pytestmark = pytest.mark.slow


def test_this_machine_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "policy=oracle", f"run_dir={tmp_path / 'deep' / 'run'}"]) == 0
    shown = capsys.readouterr().out
    assert "ok       versions        Python 3." in shown
    assert f"{tmp_path / 'deep' / 'run'} is seen here" in shown
    assert shown.endswith("all is well\n")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_there_and_a_folder_that_cannot_be_written_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert main(["doctor", f"policy.model={tmp_path}", "run_dir=/proc/none/run"]) == 1
    shown = capsys.readouterr().out
    assert "failed   policy" in shown
    assert "failed   run_dir         no file can be made in /proc (" in shown
    assert "remedy: choose another run_dir" in shown
    assert shown.endswith("2 failed\n")


SCRIPT = """
import os, sys
from pipeline.cli.workers import set_up_ray
set_up_ray(None)
from pipeline.config.label import ClusterConfig
from pipeline.preflight.machine import joined_nodes, this_machine
from pipeline.runtime.connection import cluster
here = this_machine(()).machines[0]
with cluster(ClusterConfig()):
    os.environ["HF_HUB_CACHE"] = sys.argv[1]  # the nodes do not have it, so it is sent
    nodes = joined_nodes((sys.argv[1], sys.argv[1] + "/none"), ("a/b",))
(machine,) = nodes.machines
print(machine.host == here.host, sorted(machine.sees.values()), abs(machine.clock) < 60)
print(machine.caches["models"][0] == sys.argv[1], machine.resources["CPU"] == here.resources["CPU"])
print(machine.has_models, nodes.free_gpus)
"""


@pytest.mark.nightly
@pytest.mark.ray
def test_every_node_of_a_cluster_is_looked_at(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True [False, True] True\nTrue True\nFalse 0.0\n", done.stderr


def test_a_run_that_begins_prints_what_is_wrong_with_its_nodes(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    config = compose_label(["data=sample", f"policy.model={tmp_path}", f"run_dir={run_dir}"])
    here = this_machine(()).machines[0]
    nodes = [
        replace(here, sees={str(tmp_path): True, str(run_dir): True}),
        replace(here, host="far", packages={"ray": "2.0"}, clock=99.0, caches={"compiled kernels": ("/k", 0)}),
    ]
    lines = list(node_warnings(config, lambda *_: Nodes(machines=nodes)))
    assert [line.partition(":")[0] for line in lines] == ["versions", "clocks", "model", "run_dir"]
    assert f"{tmp_path} does not exist on far; use a path that all nodes mount" in lines[2]
    assert f"{run_dir} does not exist on far" in lines[3]
    assert list(node_warnings(config, this_machine)) == []


@pytest.fixture(autouse=True)
def tokenizers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tokenizer is loaded once for all tests."""
    monkeypatch.setattr("pipeline.engines.vllm.policies.load_tokenizer", loaded_once)


loaded_once = cache(load_tokenizer)
H100 = Gpu(name="NVIDIA H100 80GB HBM3", memory=80 * 10**9, free=78 * 10**9)


def node(*gpus: Gpu) -> Machine:
    """A machine with these GPUs, and 16 CPUs."""
    return Machine(
        host="a",
        driver="580.95.05",
        gpus=gpus,
        torch_cuda="13.0",
        shared=32 * 10**9,
        caches={"models": ("/cache", 900 * 10**9), "compiled kernels": ("/kernels", 900 * 10**9)},
        resources={"CPU": 16.0, "GPU": float(len(gpus)), "accelerator_type:H100": 1.0},
    )


def doctor(*settings: str, nodes: Sequence[Machine], free_gpus: float | None = None) -> dict[str, Finding]:
    seen = Nodes(machines=nodes, free_gpus=free_gpus)
    findings = preflight(compose_label(["data=sample", *settings]), lambda *_: seen)
    return {finding.check: finding for finding in findings}


@pytest.mark.parametrize(
    ("settings", "free", "level", "text"),
    [
        (["cluster.gpus_per_worker=1"], 73, Level.OK, "90%"),
        (["cluster.gpus_per_worker=1"], 71, Level.FAILED, "71.0 of 80.0 GB free; engines take 90%"),
        (["cluster.gpus_per_worker=0.5"], 71, Level.FAILED, "engines take 90%"),
        (["cluster.gpus_per_worker=0.5", "policy.memory_share=0.3"], 50, Level.OK, "60%"),
        (["cluster.gpus_per_worker=0.1", "policy.memory_share=0.05"], 41, Level.OK, "50%"),
    ],
)
def test_the_engines_of_a_gpu_take_its_memory_together(settings: list[str], free: int, level: Level, text: str) -> None:
    finding = doctor(*settings, nodes=[node(replace(H100, free=free * 10**9))])["GPU memory"]
    assert (finding.level, text in finding.text) == (level, True)


def test_doctor_says_which_workers_the_run_would_have() -> None:
    eight = [node(*[H100] * 8)]
    half = doctor("cluster.gpus_per_worker=0.5", nodes=eight)["workers"]
    assert half.text == "16 workers, each with 1 CPU and 0.5 GPUs"
    assert doctor("cluster.gpus_per_worker=2", nodes=eight)["workers"].text == "4 workers, each with 1 CPU and 2 GPUs"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            ["cluster.gpus_per_worker=1", "policy.tensor_parallel=2"],
            "policy.tensor_parallel=2 spreads the model over more",
        ),
        (["cluster.gpus_per_worker=0.5", "policy.memory_share=0.9"], "policy.memory_share=0.9 is more of a GPU"),
    ],
)
def test_settings_that_exclude_each_other_are_refused_before_anything_is_looked_at(
    settings: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "data=sample", *settings]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert text in printed.err


def test_doctor_refuses_workers_that_do_not_fit() -> None:
    finding = doctor("cluster.gpus_per_worker=1", "cluster.workers=9", nodes=[node(*[H100] * 8)])["workers"]
    assert (finding.level, "can hold 8" in finding.text) == (Level.FAILED, True), finding.text


def test_gpus_that_others_use_are_a_warning() -> None:
    taken = doctor("cluster.gpus_per_worker=1", nodes=[node(*[H100] * 8)], free_gpus=2.0)["workers"]
    assert (taken.level, taken.text) == (Level.WARNING, "8 GPUs are needed, and others use all but 2 of the cluster's")
    assert doctor("cluster.gpus_per_worker=1", nodes=[node(*[H100] * 8)], free_gpus=8.0)["workers"].level is Level.OK


def test_an_input_that_is_not_there_fails(tmp_path: Path) -> None:
    finding = doctor(f"data.path={tmp_path}/none.jsonl", "policy=oracle", nodes=[node()])["data"]
    assert (finding.level, "there is no file or folder" in finding.text) == (Level.FAILED, True)
    assert doctor("policy=oracle", nodes=[node()])["data"].text == "1 file"


def test_a_model_of_the_hub_is_found_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--org--name" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    assert not look((), ("org/name",)).has_models
    (snapshot / "model.safetensors").write_bytes(b"")
    assert look((), ("org/name",)).has_models
    assert not look((), ("org/name", "org/other")).has_models
    (snapshot / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "1", "b": "2"}}))
    (snapshot / "1").write_bytes(b"")
    assert not look((), ("org/name",)).has_models, "one part of two"
    (snapshot / "2").write_bytes(b"")
    assert look((), ("org/name",)).has_models


def test_the_download_is_what_lies_in_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what vLLM makes of it: `quantization=fp8` halves the memory alone."""
    asked: list[tuple[str, Any]] = []

    def planned(name: str, revision: str | None, **how: Any) -> None:
        asked.append((name, how["quantization"]))

    monkeypatch.setattr("pipeline.engines.vllm.policies.planned_architecture", planned)
    settings = ["policy=hf", "policy.model=org/name", "policy.quantization=fp8", "policy.speculative_model=org/draft"]
    policy = policy_for(compose_label(["data=sample", *settings, "policy.speculative_tokens=2"]).policy)
    assert policy.download_bytes() == 0
    assert asked == [("org/name", None), ("org/draft", None)]


def test_a_hub_that_is_off_for_a_while_is_on_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_unreachable", lambda: "ConnectError")
    before = hub.hub_is_off()
    with hub.hub_asked_once() as reason:
        assert reason == "ConnectError" or before
        assert hub.hub_is_off()
    assert hub.hub_is_off() == before


def test_nodes_that_may_still_join_are_a_warning() -> None:
    few = doctor("cluster.gpus_per_worker=1", "cluster.workers=9", "cluster.address=auto", nodes=[node(*[H100] * 8)])
    assert few["workers"].level is Level.WARNING
    assert "waits up to 600 s for nodes to join (cluster.wait_seconds)" in few["workers"].remedy


def test_the_cpu_build_on_a_machine_with_gpus_is_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.engines.vllm.policies.on_gpu_build", lambda: False)
    assert doctor(nodes=[node(H100)])["GPUs"].level is Level.WARNING
    assert "GPUs" not in doctor("cluster.gpus_per_worker=0", nodes=[node(H100)])
    assert "GPUs" not in doctor("policy=oracle", nodes=[node(H100)])


class _Hub(BaseHTTPRequestHandler):
    """A Hub that has no model."""

    def do_HEAD(self) -> None:
        self.send_response(404)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()

    def log_message(self, *_: object) -> None:
        return


def with_hub(endpoint: str, folder: Path, command: str = "doctor") -> "subprocess.CompletedProcess[str]":
    hidden = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [sys.executable, "-m", "pipeline", command, "data=sample", "policy.model=no/such-model", f"run_dir={folder}"],
        cwd=ROOT,
        env={**environment, "HF_ENDPOINT": endpoint, "HF_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def nobody() -> Iterator[str]:
    """The address of a hub that does not answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{free.getsockname()[1]}"


def test_a_hub_that_does_not_answer_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_unreachable", lambda: "ConnectError")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    found = doctor("policy=hf", "policy.model=no/such-model", nodes=[node(H100)])
    assert (found["Hub"].level, "cannot be reached (ConnectError)" in found["Hub"].text) == (Level.WARNING, True)
    assert found["policy"].level is Level.FAILED
    assert "the tokenizer no/such-model cannot be loaded" in found["policy"].text


@pytest.mark.nightly
def test_a_hub_that_does_not_answer_is_asked_once(tmp_path: Path, nobody: str) -> None:
    done = with_hub(nobody, tmp_path)
    assert done.returncode == 1
    assert "warning  Hub             127.0.0.1 cannot be reached" in done.stdout
    assert "failed   policy          the tokenizer no/such-model cannot be loaded" in done.stdout
    assert "Retrying" not in done.stderr + done.stdout


@pytest.mark.nightly
def test_a_plan_without_the_hub_is_refused_in_a_line(tmp_path: Path, nobody: str) -> None:
    planned = with_hub(nobody, tmp_path, "plan")
    (line,) = planned.stderr.splitlines()
    assert line.startswith(
        "stepvalue: the tokenizer no/such-model cannot be loaded: there is no such folder here, and the Hug"
    )


@pytest.mark.nightly
def test_a_hub_that_answers_is_reported(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), _Hub) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        done = with_hub(f"http://127.0.0.1:{hub.server_port}", tmp_path)
        hub.shutdown()
    assert "ok       Hub             127.0.0.1 answers" in done.stdout, done.stdout + done.stderr
    assert "failed   policy          the tokenizer no/such-model cannot be loaded" in done.stdout
