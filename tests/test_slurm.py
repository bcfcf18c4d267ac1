"""`docker/slurm.sh` without Slurm: stand-ins for srun, scontrol and ray show what it starts and how it ends."""

import dataclasses
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.__main__ import main
from pipeline.cli import COMMANDS
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

SCRIPT = ROOT / "docker" / "slurm.sh"
WORDS = ["label", "data=sample", "run_dir=/shared/runs/one run"]
SECONDS = 30
CHOSEN = {
    "HF_HOME",
    "HF_HUB_CACHE",
    "HUGGINGFACE_HUB_CACHE",
    "HF_XET_CACHE",
    "VLLM_CACHE_ROOT",
    "TRITON_CACHE_DIR",
    "RAY_worker_niceness",
    "RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT",
    "SLURM_CPUS_PER_TASK",
    "RAY_TMPDIR",
    "RAY_AUTH_MODE",
    "RAY_AUTH_TOKEN",
    "RAY_AUTH_TOKEN_PATH",
}
"""Variables of a user that the script keeps."""

STAND_INS = {
    "srun": 'while [[ "$1" == --* ]]; do o+=" $1"; shift; done; [ "$1" = bash ] || echo "srun$o $*" >> "$LOG"; exec "$@"',
    "id": 'echo "${ID:-$(/usr/bin/id "$@")}"',
    "scontrol": 'echo "scontrol $*" >> "$LOG"; [ "$1" = show ] && sleep "${SHOW:-0}" && printf "node1\\nnode2\\n"; exit 0',
    # What the head does with it: its own options, then the command, whose exit code is passed on.
    "ray": 'echo "ray $*" >> "$LOG"\n'
    'echo "niceness $RAY_worker_niceness, wait $RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT" >> "$LOG"\n'
    'printenv RAY_TMPDIR RAY_AUTH_MODE RAY_AUTH_TOKEN RAY_AUTH_TOKEN_PATH > "$LOG.ray"\n'
    'while [ "$1" != -- ]; do shift; done; shift; sleep "${JOIN:-0}"; "$@"',
    "python": 'echo "python $*" >> "$LOG"\n'
    'echo "cache $HF_HUB_CACHE $HF_XET_CACHE $VLLM_CACHE_ROOT $TRITON_CACHE_DIR" >> "$LOG"\n'
    'echo "home ${HF_HOME:-}" >> "$LOG"; [ -z "${DEAF:-}" ] || { touch "$LOG.under-way"; exec sleep 20; }\n'
    "trap 'echo signal >> \"$LOG\"; exit 75' TERM\n"
    'touch "$LOG.under-way"; for _ in $(seq "${TENTHS:-0}"); do sleep 0.1; done; exit "${CODE:-0}"',
}


@dataclass(frozen=True)
class Slurm:
    """A folder with the stand-ins."""

    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def start(self, nodes: int, *words: str, **environment: str) -> "subprocess.Popen[str]":
        own = {name: value for name, value in os.environ.items() if name not in CHOSEN}
        return subprocess.Popen(
            ["bash", str(SCRIPT), *(words or WORDS)],
            env={
                **own,
                "PATH": f"{self.folder}:{os.environ['PATH']}",
                "LOG": str(self.log),
                "STEPVALUE_NODE_CACHE": str(self.folder / "node"),
                "SLURM_SUBMIT_DIR": str(self.folder),
                "SLURM_JOB_NUM_NODES": str(nodes),
                "SLURM_JOB_NODELIST": "node[1-2]",
                "SLURM_JOB_ID": "42",
                "SLURM_CPUS_ON_NODE": "64",
                **environment,
            },
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def lines(self) -> list[str]:
        return self.log.read_text("utf-8").splitlines()


@pytest.fixture
def slurm(tmp_path: Path) -> Slurm:
    for name, body in STAND_INS.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/bash\n{body}\n")
        program.chmod(0o755)
    return Slurm(tmp_path)


def test_the_script_is_sound() -> None:
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True)
    if shellcheck := shutil.which("shellcheck"):
        subprocess.run([shellcheck, str(SCRIPT), str(SCRIPT.parent / "entrypoint.sh")], check=True)


def test_one_node_runs_the_pipeline_alone(slurm: Slurm) -> None:
    assert slurm.start(1).wait(SECONDS) == 0
    first, cache, home = slurm.lines()
    assert first == "python -m pipeline " + " ".join(WORDS)
    assert all(part.startswith(f"{slurm.folder}/node/") for part in cache.split()[1:])
    assert home == "home ", "the token of `hf auth login` lies there"


@pytest.fixture
def node() -> Iterator[tuple[str, Path]]:
    """An account that nobody has, and its folder on the node."""
    account = str(3 * 10**9 + os.getpid())
    yield account, (folder := Path(f"/tmp/stepvalue-{account}"))
    folder.unlink() if folder.is_symlink() else shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize(
    ("mode", "owned", "code"),
    [(None, False, 2), (0o700, False, 2), (0o755, True, 2), (0o700, True, 0), ("link", True, 2)],
)
def test_a_folder_on_the_node_that_others_made_or_can_enter_is_refused(
    slurm: Slurm, node: tuple[str, Path], nodes: int, mode: int | str | None, owned: bool, code: int
) -> None:
    account, folder = node
    if owned and os.geteuid():
        pytest.skip("only root gives folders away")
    if mode == "link":
        folder.symlink_to(slurm.folder)
    elif isinstance(mode, int):
        folder.mkdir()
        folder.chmod(mode)
    if owned:
        os.chown(folder, int(account), -1, follow_symlinks=False)
    started = slurm.start(nodes, ID=account, STEPVALUE_NODE_CACHE="")
    said, _ = started.communicate(timeout=SECONDS)
    assert started.returncode == code, said
    assert ("is not a folder that only you can enter" in said) == bool(code)
    assert logs(slurm, "python")() == (code == 0)
    assert mode is not None or folder.stat().st_mode & 0o7777 == 0o700


def test_ray_has_a_token_of_the_job_that_stands_on_no_command_line(slurm: Slurm) -> None:
    tokens = set()
    for _ in range(2):
        assert slurm.start(2).wait(SECONDS) == 0
        folder, mode, token = Path(f"{slurm.log}.ray").read_text().split()
        assert (folder, mode) == (str(slurm.folder / "node/r"), "token")
        assert Path(folder).stat().st_mode & 0o777 == 0o700
        assert re.fullmatch("[0-9a-f]{64}", token)
        assert token not in slurm.log.read_text("utf-8")
        tokens.add(token)
    assert len(tokens) == 2
    user = {"RAY_TMPDIR": "/t", "RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN_PATH": "/shared/token"}
    assert slurm.start(2, **user).wait(SECONDS) == 0
    assert Path(f"{slurm.log}.ray").read_text().split() == list(user.values())


def test_several_nodes_run_it_on_the_first_beside_ray_on_all(slurm: Slurm) -> None:
    assert slurm.start(2).wait(SECONDS) == 0
    asked, run, ray, settings, python, *_ = slurm.lines()
    assert asked == "scontrol show hostnames node[1-2]"
    assert run.startswith("srun --export=ALL --cpus-per-task=64 ray symmetric-run ")
    assert ray.startswith("ray symmetric-run --address node1:6379 --min-nodes 2 -- ")
    assert settings == "niceness 0, wait 600"
    assert python == "python -m pipeline " + " ".join(WORDS) + " cluster.address=auto"


def test_what_the_user_has_set_is_kept(slurm: Slurm) -> None:
    user = {
        "SLURM_CPUS_PER_TASK": "16",
        "RAY_worker_niceness": "5",
        "RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT": "1800",
        "HF_HOME": "/models",
        "HF_XET_CACHE": "/chunks",
        "VLLM_CACHE_ROOT": "/kernels",
        "TRITON_CACHE_DIR": "/triton",
    }
    assert slurm.start(2, **user).wait(SECONDS) == 0
    _, run, _, settings, _, cache, home = slurm.lines()
    assert run.startswith("srun --export=ALL --cpus-per-task=16 ray symmetric-run ")
    assert settings == "niceness 5, wait 1800"
    assert cache == "cache /models/hub /chunks /kernels /triton"
    assert home == "home /models"


@pytest.mark.parametrize("name", ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"])
def test_a_cache_of_models_that_the_user_has_set_is_kept(slurm: Slurm, name: str) -> None:
    assert slurm.start(1, HF_HOME="/home/me/hf", **{name: "/models"}).wait(SECONDS) == 0
    _, cache, home = slurm.lines()
    assert cache.startswith("cache /models /home/me/hf/xet ")
    assert home == "home /home/me/hf"


def test_a_login_is_found_and_models_lie_on_the_disk_of_the_node(slurm: Slurm) -> None:
    """The installed huggingface_hub reads the variables as the script means them."""
    pytest.importorskip("huggingface_hub")
    (slurm.folder / ".cache" / "huggingface").mkdir(parents=True)
    (slurm.folder / ".cache" / "huggingface" / "token").write_text("hf_of_a_login")
    code = (
        "import huggingface_hub as hub; from huggingface_hub import constants as c; "
        "print(hub.get_token(), c.HF_HUB_CACHE, c.HF_XET_CACHE)"
    )
    (slurm.folder / "python").write_text(f"#!/bin/bash\nexec {sys.executable} -c '{code}'\n")
    process = slurm.start(
        1,
        HOME=str(slurm.folder),
        XDG_CACHE_HOME=str(slurm.folder / ".cache"),
        HF_TOKEN="",
        STEPVALUE_NODE_CACHE="/local",
    )
    out, _ = process.communicate(timeout=SECONDS)
    assert out.split() == ["hf_of_a_login", "/local/huggingface/hub", "/local/huggingface/xet"]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_with_a_cluster_run_on_all_nodes_and_others_on_the_first(slurm: Slurm, command: str) -> None:
    joins = any(each.name == "cluster" for each in dataclasses.fields(COMMANDS[command].schema))
    assert slurm.start(2, command, "run_dir=/shared/run").wait(SECONDS) == 0
    assert any(line.startswith("srun ") for line in slurm.lines()) == joins
    python = f"python -m pipeline {command} run_dir=/shared/run" + " cluster.address=auto" * joins
    assert python in slurm.lines()


def test_the_installed_ray_reads_the_options_as_meant(slurm: Slurm) -> None:
    module = pytest.importorskip("ray.scripts.symmetric_run")
    slurm.start(2).wait(SECONDS)
    words = shlex.split(slurm.lines()[2])[2:]
    context = module.symmetric_run.make_context("_", list(words))
    assert (context.params["address"], context.params["min_nodes"]) == ("node1:6379", 2)
    assert module.curate_and_validate_ray_start_args(words[: words.index("--")]) == []
    assert "RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT" in Path(module.__file__).read_text("utf-8")
    assert 'export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT="' in SCRIPT.read_text("utf-8")


def under_way(slurm: Slurm) -> bool:
    return Path(f"{slurm.log}.under-way").exists()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def logs(slurm: Slurm, start: str) -> Callable[[], bool]:
    """Whether the log has a line that starts so."""
    return lambda: slurm.log.exists() and any(line.startswith(start) for line in slurm.lines())


def test_slurm_sends_the_signal_after_which_the_job_goes_back_into_the_queue() -> None:
    assert "\n#SBATCH --signal=B:USR1@300\n" in SCRIPT.read_text("utf-8")


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_time_limit_reaches_the_pipeline_and_the_job_goes_back_into_the_queue(slurm: Slurm, nodes: int) -> None:
    process = slurm.start(nodes, TENTHS="200")
    until(lambda: under_way(slurm))
    process.send_signal(signal.SIGUSR1)
    assert process.wait(SECONDS) == 75
    assert slurm.lines()[-2:] == ["signal", "scontrol requeue 42"]


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("before", [(), (signal.SIGUSR1,)])
def test_a_cancelled_job_commits_and_stays_ended(slurm: Slurm, nodes: int, before: tuple[signal.Signals, ...]) -> None:
    process = slurm.start(nodes, TENTHS="200")
    until(lambda: under_way(slurm))
    for number in (*before, signal.SIGTERM):
        process.send_signal(number)
    assert process.wait(SECONDS) == 75
    assert "signal" in slurm.lines()
    assert not any("requeue" in line for line in slurm.lines())


@pytest.mark.parametrize(("number", "again"), [(signal.SIGUSR1, True), (signal.SIGTERM, False)])
@pytest.mark.parametrize("moment", [{"SHOW": "1"}, {"JOIN": "1"}], ids=["before Ray starts", "while Ray starts"])
def test_a_signal_before_the_pipeline_starts_is_kept(
    slurm: Slurm, number: signal.Signals, again: bool, moment: dict[str, str]
) -> None:
    process = slurm.start(2, TENTHS="200", **moment)
    until(logs(slurm, "scontrol show" if "SHOW" in moment else "ray "))
    process.send_signal(number)
    assert process.wait(SECONDS) == 75
    assert not logs(slurm, "python")()
    assert logs(slurm, "scontrol requeue 42")() == again


def test_a_signal_before_python_listens_is_kept(slurm: Slurm) -> None:
    process = slurm.start(1, DEAF="1")
    until(lambda: under_way(slurm))
    process.send_signal(signal.SIGUSR1)
    assert process.wait(SECONDS) == 128 + signal.SIGTERM
    assert slurm.lines()[-1] == "scontrol requeue 42"


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("code", [0, 1, 2, 75])
def test_an_end_without_a_signal_of_slurm_is_final(slurm: Slurm, nodes: int, code: int) -> None:
    assert slurm.start(nodes, CODE=str(code)).wait(SECONDS) == code
    assert not logs(slurm, "scontrol requeue")()


def test_the_example_commands_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (SCRIPT.parent / "README.md").read_text("utf-8").replace("\\\n", "")
    lines = [*SCRIPT.read_text("utf-8").splitlines(), *readme.splitlines()]
    examples = [line.split("slurm.sh ", 1)[1] for line in lines if "sbatch --nodes=" in line]
    assert len(examples) == 6
    for example in examples:
        assert main([*shlex.split(example, comments=True), "--cfg", "job"]) == 0, capsys.readouterr().err
