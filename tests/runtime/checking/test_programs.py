"""Steps of Python, run in the processes of `check`: what is found, what ends, and that nothing stays."""

import time
from pathlib import Path

import pytest

from pipeline.config.check import CheckRunConfig
from pipeline.config.label import DataConfig
from tests.conftest import write_rows
from tests.runtime.checking.runs import QUICK, checked, frame
from tests.verifiers.programs.generated import fenced

pytestmark = pytest.mark.slow

PROBLEM = "Write a function.\n" + "\n".join(f"assert square({n}) == {n * n}" for n in (3, -4, 7, 12))
RIGHT = fenced("def square(x: int) -> int:\n    return x * x")
WRONG = fenced("def square(x: int) -> int:\n    return x + x")
CALLED_WRONGLY = fenced("square('a')")
SECONDS = 20.0


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
    rows: list[dict[str, object]] = [
        {"problem": PROBLEM, "answer": "1", "steps": [RIGHT, CALLED_WRONGLY], "id": "a"},
        {"problem": PROBLEM, "answer": "1", "steps": [WRONG, "So it is done."], "id": "b"},
        {"problem": PROBLEM, "answer": "1", "steps": [fenced("while True:\n    pass")], "id": "c"},
    ]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    checked(
        CheckRunConfig(
            run_dir=str(tmp_path / "run"),
            checks=["code"],
            processes=1,
            run=QUICK,
            data=DataConfig(path=str(path)),
        )
    )
    raised = "TypeError: can't multiply sequence by non-int of type 'str', at `return x * x`"
    code = {tuple(row) for row in frame(tmp_path / "run", "code").select("verdict", "covers", "evidence").rows()}
    assert code == {
        ("holds", "whole", "passes 4 tests of the problem"),
        ("unknown", "part", f"{raised}; but it is raised in the code of an earlier step"),
        ("refuted", "part", "the problem's test assert square(3) == 9 fails: square(3) is 6"),
        ("unknown", "part", ""),
        ("unknown", "part", "the program reaches a limit of processor time, threads or files"),
    }
    until = time.monotonic() + SECONDS
    while (left := [*folder.iterdir(), *_processes_with(folder)]) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left
