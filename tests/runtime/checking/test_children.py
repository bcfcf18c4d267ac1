"""The processes in which verifiers are asked: limits, deaths, and that nothing is left running."""

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from pipeline.core.errors import PlaceError, PluginError, StepvalueError
from pipeline.core.records import ChainText
from pipeline.runtime.checking.children import StepChecker
from pipeline.verifiers.base import Fault, StepVerdict
from pipeline.verifiers.settings import AlgebraConfig, ArithmeticConfig
from tests.checkout import ROOT
from tests.deadlines import until
from tests.runtime.checking.hostile import ObedientConfig
from tests.runtime.checking.runs import obedient
from tests.verifiers.hostile import HOSTILE

pytestmark = pytest.mark.slow

SECONDS = 20.0


def chain(*steps: str, name: str = "c") -> ChainText:
    return ChainText(chain_id=name, problem_id="p", problem="?", steps=steps, prefix_ids=steps)


@pytest.fixture
def offered() -> Iterator[None]:
    with obedient():
        yield


def gone(pid: int) -> bool:
    """Whether a process ends soon."""
    with suppress(psutil.NoSuchProcess):
        until(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, SECONDS)
    return True


def started(note: Path) -> list[int]:
    """The processes that a verifier has started, by its note in their command lines."""
    running = psutil.process_iter(["cmdline"])
    return [each.pid for each in running if any(f"# {note}" in word for word in each.info["cmdline"] or ())]


@pytest.mark.usefixtures("offered")
def test_what_a_late_verifier_has_started_is_killed_with_it(tmp_path: Path) -> None:
    note = tmp_path / "note"
    with closing(StepChecker(ObedientConfig(note=str(note), deadline_seconds=1.5), 1)) as checker:
        (first, second) = checker.checked(chain("breed", "right"))
        assert (first.fault, second.finding.verdict) == (Fault.DEADLINE, StepVerdict.HOLDS)
        assert started(note) == []


@pytest.mark.usefixtures("offered")
def test_a_step_whose_process_somebody_kills_is_asked_again(tmp_path: Path) -> None:
    note = tmp_path / "note"
    with closing(StepChecker(ObedientConfig(note=str(note), deadline_seconds=SECONDS), 1)) as checker:
        assert checker.checked(chain("right"))[0].finding.verdict is StepVerdict.HOLDS
        process = checker._children[0].process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        threading.Timer(0.2, lambda: os.kill(process.pid, signal.SIGKILL)).start()
        (found,) = checker.checked(chain("wrong", name="d"))
        assert found.finding.verdict is StepVerdict.REFUTED
        assert note.read_text() == "right\nwrong\n"


@pytest.mark.usefixtures("offered")
def test_closing_ends_a_process_in_the_middle_of_a_step(tmp_path: Path) -> None:
    note = tmp_path / "note"
    checker = StepChecker(ObedientConfig(note=str(note), deadline_seconds=600), 2)
    failed: list[str] = []

    def ask() -> None:
        try:
            checker.checked(chain("sleep", "right"))
        except StepvalueError as error:
            failed.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    until(note.exists, SECONDS)
    process = checker._children[0].process
    assert process is not None
    checker.close()
    thread.join(SECONDS)
    assert failed == ["this check is closed"]
    assert gone(process.pid)
    with pytest.raises(StepvalueError, match="this check is closed"):
        checker.checked(chain("right"))


@pytest.mark.parametrize("step", ["sleep", "spin", "breed"])
def test_a_process_ends_when_its_parent_dies(step: str, tmp_path: Path) -> None:
    """Also in the middle of a step, with what it has started."""
    note = tmp_path / "note"
    code = (
        "import os, sys, threading, time\nfrom tests.runtime.checking.runs import obedient\n"
        "from tests.runtime.checking.test_children import StepChecker, ObedientConfig, chain, started\n"
        f"with obedient():\n    checker = StepChecker(ObedientConfig(note={str(note)!r}, deadline_seconds=600), 1)\n"
        "checker.start()\nprint(checker._children[0].process.pid, flush=True)\n"
        f"threading.Thread(target=checker.checked, args=(chain({step!r}),), daemon=True).start()\n"
        f"while not os.path.exists({str(note)!r}):\n    time.sleep(0.01)\n"
        f"while {step!r} == 'breed' and not started({str(note)!r}):\n    time.sleep(0.01)\n"
        "os._exit(0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert gone(int(done.stdout))
    assert all(gone(pid) for pid in started(note))


def test_a_process_has_the_memory_limit_of_the_settings() -> None:
    with closing(StepChecker(ArithmeticConfig(memory_mib=700), 1)) as checker:
        checker.start()
        process = checker._children[0].process
        assert process is not None
        assert resource.prlimit(process.pid, resource.RLIMIT_AS)[0] == 700 << 20


def test_hostile_steps_stall_no_built_in_verifier() -> None:
    """Each is looked at, or its process is killed in time; nothing of them is executed."""
    canary = ROOT / "canary"
    for settings in (ArithmeticConfig(), AlgebraConfig(deadline_seconds=1.0)):
        with closing(StepChecker(settings, 1)) as checker:
            found = checker.checked(chain(*HOSTILE.values(), "1 + 1 = 3, so x = 3", name="hostile"))
        assert len(found) == len(HOSTILE) + 1
        assert {each.fault for each in found} <= {None, Fault.DEADLINE, Fault.MEMORY}
        assert not canary.exists()


@pytest.mark.usefixtures("offered")
def test_a_verifier_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        closing(StepChecker(ObedientConfig(kind="nobody"), 1)) as unknown,
        pytest.raises(PluginError, match=r"verifier\.kind=nobody: there is no such verifier here"),
    ):
        unknown.start()
    monkeypatch.setattr("pipeline.runtime.checking.children._MODULE", "pipeline.no_such_module")
    with (
        closing(StepChecker(ObedientConfig(), 1)) as checker,
        pytest.raises(PlaceError, match="the process of the verifier obedient does not start: run"),
    ):
        checker.start()
