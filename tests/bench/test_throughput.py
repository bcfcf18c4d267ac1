"""What the benches of throughput compute from what they measure; nothing here loads a model."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pipeline.engines.architectures import architecture_of
from pipeline.engines.roofline import parameters
from tests.bench.engine import shown_of
from tests.bench.gpu_work import ARCHITECTURES
from tests.bench.results import block, printed
from tests.bench.straightforward.figures import Labelled, agreement, at_error, error, expected_error
from tests.bench.watched import Look, Role, Watched, watched
from tests.tiny.compared import Floats, Truth, truth

pytestmark = pytest.mark.slow

COPIES = 300


def architecture(name: str) -> dict[str, object]:
    read: dict[str, object] = json.loads((ARCHITECTURES / f"{name}.json").read_text())
    return read


def drawn(known: Truth, value: Floats, rollouts: int, seed: int) -> Labelled:
    shape = (COPIES, len(value))
    correct = np.random.default_rng(seed).binomial(rollouts, value, size=shape).astype(float)
    return Labelled(value=correct / rollouts, correct=correct, graded=np.full(shape, float(rollouts)), tokens=0)


@pytest.fixture(scope="module")
def known() -> Truth:
    return truth()


@pytest.mark.parametrize(("name", "billions"), [("qwen2.5-1.5b", 1.54), ("qwen2.5-7b", 7.61), ("llama-3.1-8b", 8.03)])
def test_shipped_architectures_have_the_parameters_that_their_names_say(name: str, billions: float) -> None:
    assert parameters(architecture_of(architecture(name))) / 1e9 == pytest.approx(billions, rel=0.005)


def test_labels_of_n_rollouts_have_the_error_that_is_expected_of_them(known: Truth) -> None:
    found = error(drawn(known, known.value, 16, seed=1), known).value
    assert found == pytest.approx(expected_error(16, known).value, rel=0.03)


def test_labels_of_the_same_policy_agree_and_those_of_another_do_not(known: Truth) -> None:
    one, other = (drawn(known, known.value, 16, seed=seed) for seed in (1, 2))
    assert agreement(one, other).tail > 1e-4
    assert agreement(one, drawn(known, known.value * 0.95, 16, seed=3)).tail < 1e-9


def test_the_cost_at_an_error_lies_on_the_power_law_through_two_runs_and_nowhere_beyond() -> None:
    runs = [(0.1, 1.0), (0.05, 4.0)]
    assert at_error(0.1 / 2**0.5, runs) == pytest.approx(2.0)
    assert np.isnan(at_error(0.04, runs))


def test_a_watched_command_is_heard_and_its_processor_time_seen() -> None:
    busy = "import time; print('ready', flush=True)\nwhile time.process_time() < 0.7: pass\nprint('done')"
    done = watched([sys.executable, "-c", busy])
    assert [said.line for said in done.said] == ["ready", "done"]
    assert done.first("ready").at <= done.first("done").at <= time.time()
    assert 0.2 < done.between(done.began, done.ended)[Role.DRIVER] < 2
    assert done.left == 0
    with pytest.raises(SystemExit, match="no line"):
        done.first("never said")


def test_a_process_that_outlives_its_command_is_ended_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.bench.watched.GRACE_SECONDS", 0.1)
    parent = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "time.sleep(2)"
    )
    began = time.monotonic()
    assert watched([sys.executable, "-c", parent]).left == 1
    assert time.monotonic() - began < 30


def test_a_command_that_fails_ends_the_bench_with_its_last_words() -> None:
    with pytest.raises(SystemExit, match="no luck"):
        watched([sys.executable, "-c", "raise SystemExit('no luck')"])


def test_processor_time_between_two_moments_lies_on_lines_between_looks() -> None:
    def look(at: float, driver: float) -> Look:
        return Look(at=at, cpu_seconds=dict.fromkeys(Role, 0.0) | {Role.DRIVER: driver})

    done = Watched(began=0, ended=4, said=[], looks=[look(0, 0), look(2, 1), look(4, 5)], driver_mib=0, left=0)
    assert done.between(1, 3)[Role.DRIVER] == pytest.approx(2.5)
    assert done.between(1, 3)[Role.WORKER] == 0


def test_what_a_summary_says_of_its_engine_ends_where_it_says_something_else() -> None:
    lines = ["engine", "tokens    5", "engine    7 tokens/s", "          idle 1 %", "time      3 s", "          more"]
    assert shown_of("engine", lines) == lines[2:4]
    assert shown_of("grading", lines) == []


def test_results_are_kept_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "RESULTS.md"
    with printed("bench", record=False, results=results):
        print("ratio 1.0")
    assert not results.exists()
    with printed("bench", record=True, results=results):
        print("\ncontrol plane\n  ratio 1.0")
    kept = results.read_text(encoding="utf-8")
    assert kept.startswith("\n## bench\n\n20")
    assert kept.endswith("\n```\ncontrol plane\n  ratio 1.0\n```\n")
    assert "cores" in kept
    assert capsys.readouterr().out.count("ratio 1.0") == 2


def test_a_bench_that_fails_leaves_no_result(tmp_path: Path) -> None:
    results = tmp_path / "RESULTS.md"
    with pytest.raises(SystemExit), printed("bench", record=True, results=results):
        raise SystemExit("no luck")
    assert not results.exists()


def test_a_block_names_its_command_and_where_it_ran() -> None:
    assert block("bench", "2026, x86\n\nengine\n") == "\n## bench\n\n2026, x86\n\n```\nengine\n```\n"
