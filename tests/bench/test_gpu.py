"""`make bench-gpu`: parts that fail, hang or are killed do not end the others; the table and the JSON file say so.

The last test runs all parts on the CPU, with a tiny model and little to do; `make nightly` has it.
"""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from pipeline.__main__ import compose_label
from pipeline.analysis.report.terminal import LiveView
from pipeline.config.fields import as_type
from pipeline.core.progress import Status, replaced_worker
from pipeline.engines.embedded import embedded_model
from pipeline.engines.settings import VllmConfig
from pipeline.engines.vllm.arguments import engine_arguments
from pipeline.engines.vllm.loaded import cpu_dtype
from pipeline.engines.vllm.reaper import SHARED_MEMORY, shared_memory_of
from tests.bench.gpu import ended, isolated, one_gpu
from tests.bench.gpu_kill import Killed, causes
from tests.bench.gpu_parts import PARTS, Found, Part, Unusual, bound, result_of
from tests.bench.gpu_table import JSON, TEXT, Result, State, table, write
from tests.bench.gpu_work import ARCHITECTURES, ON_CPU, ON_GPU, Job, job
from tests.bench.raw import on_cpu, raw_engine
from tests.conftest import ROOT
from tests.lint_docker import DOCKER
from tests.lint_pins import GPU_LOCK, pins

MINUTES = 40
KILLED = Killed(
    memory=(70_000.0, 900.0),
    gone=True,
    cause=replaced_worker("vLLM stopped working"),
    code=0,
    again=0,
    rollouts=9,
    distinct=9,
)


def made(folder: Path, gpu: str | None = None) -> Job:
    return Job(
        name="any",
        model=str(folder),
        random_weights=True,
        gpu=gpu,
        folder=folder,
        scale=ON_GPU,
        settings=["policy=hf", f"policy.model={folder}"],
    )


def measured(part: str, speed: float) -> Result:
    return Result(part=part, state=State.DONE, figures={"tokens_per_second": speed})


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_part_that_ends_itself_gives_its_reason(tmp_path: Path) -> None:
    code = "import sys; print('the GPU fell off the bus'); sys.exit(3)"
    result = ended("any", python(code), tmp_path / "none", tmp_path / "log", 60)
    assert result.state is State.FAILED
    assert "exit code 3" in result.why
    assert "the GPU fell off the bus" in result.why


def test_a_part_that_is_killed_is_named_with_its_signal(tmp_path: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert "SIGKILL" in ended("any", python(code), tmp_path / "none", tmp_path / "log", 60).why


def test_a_part_that_hangs_is_ended_with_its_processes(tmp_path: Path) -> None:
    child = tmp_path / "child"
    code = (
        "import pathlib, subprocess, sys, time\n"
        "process = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(child)!r}).write_text(str(process.pid))\n"
        "time.sleep(600)"
    )
    result = ended("any", python(code), tmp_path / "none", tmp_path / "log", 3)
    assert result.state is State.FAILED
    assert "did not end within 3 s" in result.why
    left = [process for process in psutil.process_iter() if process.pid == int(child.read_text())]
    assert all(process.status() == psutil.STATUS_ZOMBIE for process in left)


def test_a_part_that_hangs_says_what_its_command_said_last(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; print('labelling 0:01:07', flush=True); time.sleep(600)"]
    names = "from tests.bench.gpu_parts import print_at_once; from tests.bench.watched import watched"
    code = f"{names}; watched({command!r}, heard=print_at_once)"
    result = ended("any", python(code), tmp_path / "none", tmp_path / "log", 20)
    assert result.why.strip().endswith("labelling 0:01:07")


def test_a_part_without_time_left_is_skipped(tmp_path: Path) -> None:
    result = isolated(PARTS[0], made(tmp_path), [], 0.0)
    assert (result.state, result.part) == (State.SKIPPED, "machine")


@pytest.mark.parametrize(
    ("error", "state", "why"),
    [
        (ValueError("no such argument"), State.FAILED, "ValueError: no such argument"),
        (SystemExit("last words of vLLM"), State.FAILED, "last words of vLLM"),
        (Unusual("the driver is old", Found(said=["driver 570"])), State.WRONG, "the driver is old"),
    ],
)
def test_whatever_a_part_raises_becomes_a_reason(tmp_path: Path, error: BaseException, state: State, why: str) -> None:
    def fail(_job: Job, _before: Mapping[str, Result]) -> Found:
        raise error

    result = result_of(Part(name="any", limit_seconds=1, measure=fail), made(tmp_path), [])
    assert result.state is state
    assert why in result.why


def test_the_table_has_a_line_for_each_part_and_the_file_all_figures(tmp_path: Path) -> None:
    results = [
        dataclasses.replace(measured("generate", 1000.0), said=["1,000 tokens/s", "after 9 s"], seconds=12),
        Result(part="kill", state=State.FAILED, why="x " * 500, seconds=3),
    ]
    lines = table(results)
    assert lines[0] == "generate  done        12 s  1,000 tokens/s"
    assert lines[1].strip() == "after 9 s"
    assert lines[2].startswith("kill      failed       3 s  ... ")
    write(tmp_path / "out", "here", "model", results)
    stored = json.loads((tmp_path / "out" / JSON).read_text())
    assert [Result.from_json(json.dumps(part)) for part in stored["parts"]] == [
        dataclasses.replace(result, said=list(result.said)) for result in results
    ]
    assert "generate  done" in (tmp_path / "out" / TEXT).read_text()


def test_a_job_is_read_as_it_was_saved(tmp_path: Path) -> None:
    made(tmp_path).save(tmp_path / "job.json")
    assert Job.read(tmp_path / "job.json") == made(tmp_path)


def test_speeds_are_compared_with_the_bound_of_the_device_and_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((ARCHITECTURES / "qwen2.5-1.5b.json").read_text())
    (tmp_path / "prompts.json").write_text(json.dumps([[0] * 472] * 4))
    before = {"generate": measured("generate", 83e3), "pipeline": measured("pipeline", 41.5e3)}
    found = bound(made(tmp_path, "NVIDIA H100 80GB HBM3"), before)
    assert "H100 SXM at batch 1024 and context 600: 165," in found.said[0]
    assert found.said[1:] == ["LLM.generate reaches 50.1% of it", "pipeline reaches 25.0% of it"]
    with pytest.raises(Unusual, match="no bound"):
        bound(made(tmp_path, "NVIDIA Riva 128"), before)
    with pytest.raises(Unusual, match="no figure of the part pipeline") as incomplete:
        bound(made(tmp_path, "NVIDIA H100 80GB HBM3"), {"generate": before["generate"]})
    assert incomplete.value.found.said[1:] == ["LLM.generate reaches 50.1% of it"]
    assert bound(made(tmp_path), {}).said == ["no bound without a GPU"]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"gone": False}, "did not end"),
        ({"memory": (70_000.0, 60_000.0)}, "still in use"),
        ({"cause": ""}, "says nothing"),
        ({"code": 1}, "exit code 1"),
        ({"again": 75}, "again ended with exit code 75"),
        ({"distinct": 8}, "8 are distinct"),
        ({"rollouts": 0, "distinct": 0}, "of 0 stored"),
    ],
)
def test_each_fault_after_a_kill_is_seen(changed: dict[str, object], fault: str) -> None:
    assert KILLED.faults() == []
    (found,) = dataclasses.replace(KILLED, **changed).faults()  # type: ignore[arg-type]
    assert fault in found


def test_the_causes_are_those_of_the_warnings_that_label_shows(capsys: pytest.CaptureFixture[str]) -> None:
    warnings = (replaced_worker("vLLM stopped working: EngineDeadError (see above)."), replaced_worker("again"))
    with LiveView(Console(force_terminal=False, width=80)) as show:
        for kept in range(3):
            show(Status(stage="replacing a worker", units=1, warnings=("another warning", *warnings[:kept])))
    shown = capsys.readouterr()
    assert causes(shown.out + shown.err) == " / ".join(warnings)
    assert causes(shown.out) == ""


@pytest.mark.parametrize(("before", "after"), [(None, "0"), ("2,3", "2"), ("5", "5")])
def test_one_gpu_of_several_is_used(monkeypatch: pytest.MonkeyPatch, before: str | None, after: str) -> None:
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if before:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", before)
    one_gpu("NVIDIA H100")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == after
    monkeypatch.undo()


def test_all_runs_but_that_of_two_engines_have_one_worker(tmp_path: Path) -> None:
    assert "cluster.workers=1" in job("org/model", tmp_path, None, ON_CPU).settings


@pytest.mark.slow
def test_it_needs_no_package_and_no_file_that_the_gpu_image_lacks(tmp_path: Path) -> None:
    """What its imports load, in a process that has nothing but what the image copies."""
    image = (DOCKER / "gpu.Dockerfile").read_text("utf-8")
    for line in (line for line in image.splitlines() if line.startswith("COPY ")):
        *sources, target = line.removeprefix("COPY ").split()
        if not target.startswith("/"):
            for source in sources:
                place = tmp_path / target / Path(source).name if target.endswith("/") else tmp_path / target
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(ROOT / source)
    code = (
        "import sys, tests.bench.gpu, tests.bench.gpu_parts\n"
        "print(*{name.partition('.')[0] for name, module in sys.modules.items() if getattr(module, '__file__', None)})"
    )
    done = subprocess.run(
        python(code), cwd=tmp_path, env={**os.environ, "PYTHONPATH": "."}, capture_output=True, text=True, check=False
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
def test_all_parts_run_on_a_cpu(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.gpu", "small", "--out", str(tmp_path), "--minutes", str(MINUTES - 1)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    stored = json.loads((tmp_path / JSON).read_text())
    states = {part["part"]: part["state"] for part in stored["parts"]}
    assert states == dict.fromkeys([part.name for part in PARTS], State.DONE), done.stdout + done.stderr
    assert done.returncode == 0
    figures = {part["part"]: part["figures"] for part in stored["parts"]}
    for name in ("generate", "pipeline", "two_engines", "capture_all", "half_sequences"):
        assert figures[name]["tokens"] > 0
        assert figures[name]["of_generate" if name != "generate" else "tokens_per_second"] > 0


@pytest.mark.nightly
@pytest.mark.model
def test_bare_vllm_leaves_no_shared_memory(tmp_path: Path) -> None:
    config = compose_label(["data=sample", f"run_dir={tmp_path / 'unused'}"])
    policy = as_type(config.policy, VllmConfig)
    asked = engine_arguments(policy, model=str(embedded_model()), dtype=cpu_dtype(), device="cpu", seed=0)
    with raw_engine(tmp_path, asked, on_cpu(config), config, [[1, 2, 3]]) as raw:
        family = [raw.process.pid, *(child.pid for child in psutil.Process(raw.process.pid).children(recursive=True))]
        held = {SHARED_MEMORY / name for name in shared_memory_of(family)}
        assert held
    assert not [path for path in held if path.exists()]
