"""A signal ends a command at once, wherever it comes, and with the command's own exit code."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.cli.command import Interruption, interrupt_on
from tests.conftest import ROOT

KILL = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"


def stopped(rest: str, names: dict[str, object], file: str = "own.py") -> None:
    """Send this process a signal from a text that goes on with `rest`, and wait."""
    with interrupt_on(signal.SIGTERM):
        exec(compile(f"{KILL}\n{rest}", file, "exec"), names)
        time.sleep(20)


def test_a_signal_interrupts_once_and_the_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGALRM)
    with pytest.raises(Interruption):
        stopped("", {})
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_in_the_import_machinery_a_signal_waits_until_it_can_be_raised() -> None:
    done: list[int] = []
    with pytest.raises(Interruption):
        stopped("for _ in range(1000): pass\ndone.append(1)", {"done": done}, "<frozen importlib._bootstrap>")
    assert done == [1]


def test_an_interruption_in_a_text_that_is_executed_leaves_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "victim.py").write_text(
        "import signal, sys\n"
        "from pipeline.cli.command import interrupt_on\n"
        "try:\n"
        "    with interrupt_on(signal.SIGTERM):\n"
        f"        exec({KILL!r})\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(75)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "victim"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        timeout=60,
        check=False,
    )
    assert done.returncode == 75
