"""Steps of Python, run in the processes of `check`: what is found, what ends, and that nothing stays."""

from pathlib import Path

import pytest

from tests.deadlines import until
from tests.runtime.checking.runs import checked_rows
from tests.verifiers.programs.generated import fenced

pytestmark = pytest.mark.slow

PROBLEM = "Write a function.\n" + "\n".join(f"assert square({n}) == {n * n}" for n in (3, -4, 7, 12))
RIGHT = fenced("def square(x: int) -> int:\n    return x * x")
WRONG = fenced("def square(x: int) -> int:\n    return x + x")
CALLED_WRONGLY = fenced("square('a')")


def _processes_with(folder: Path) -> list[int]:
    """Processes whose environment or arguments name a folder, without this one's own environment."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                texts = (path / "environ").read_bytes() + (path / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in texts:
                found.append(int(path.name))
    return found


def test_programs_are_run_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    chains = ([RIGHT, CALLED_WRONGLY], [WRONG, "So it is done."], [fenced("while True:\n    pass")])
    found = checked_rows(tmp_path, [(PROBLEM, steps) for steps in chains], "code")
    raised = "TypeError: can't multiply sequence by non-int of type 'str', at `return x * x`"
    assert set(found.select("verdict", "covers", "evidence").rows()) == {
        ("holds", "whole", "passes 4 tests of the problem"),
        ("unknown", "part", f"{raised}; but it is raised in the code of an earlier step"),
        ("refuted", "part", "the problem's test assert square(3) == 9 fails: square(3) is 6"),
        ("unknown", "part", ""),
        ("unknown", "part", "the program reaches a limit of processor time, threads or files"),
    }
    until(lambda: not [*folder.iterdir(), *_processes_with(folder)])
