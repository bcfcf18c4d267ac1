"""Temporary folders go with their process: at its end, or at the next start if it was killed."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import patch

import pytest

from pipeline.storage.temporary import OWNER, keep, owned_folder, remove_left_over, temporary_folder
from tests.conftest import ROOT

PREFIX = "stepvalue-test-"
HOLD = (
    "import sys\nfrom pipeline.storage.temporary import owned_folder\n"
    f"with owned_folder({PREFIX!r}, sys.argv[1]) as folder:\n"
    "    (folder / 'rows').write_text('secret')\n    print(folder, flush=True)\n    sys.stdin.read()\n"
)


def holder(parent: Path) -> "tuple[subprocess.Popen[str], Path]":
    """A process that holds a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(parent)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_folder_of_a_killed_process_goes_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    killed, left = holder(tmp_path)
    living, held = holder(tmp_path)
    try:
        assert remove_left_over(PREFIX, str(tmp_path)) == []
        killed.kill()
        killed.wait()
        assert remove_left_over(PREFIX, str(tmp_path)) == [left]
        assert not left.exists()
        assert (held / "rows").read_text() == "secret"
    finally:
        living.kill()
        living.communicate()
        killed.communicate()


def test_a_call_removes_what_an_earlier_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed, left = holder(tmp_path)
    killed.kill()
    killed.communicate()
    with temporary_folder(PREFIX) as folder:
        assert not left.exists()
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []


def test_what_is_kept_foreign_or_without_a_lock_file_stays(tmp_path: Path) -> None:
    def folder(name: str) -> Path:
        made = tmp_path / name
        made.mkdir()
        (made / OWNER).touch()
        return made

    left, kept, elsewhere, foreign = (folder(name) for name in (f"{PREFIX}a", f"{PREFIX}b", "elsewhere", f"{PREFIX}c"))
    keep(kept)
    (tmp_path / f"{PREFIX}alike").mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)
    (left / "link").symlink_to(elsewhere)
    os.mkfifo(left / "pipe")
    if os.geteuid() == 0:
        os.chown(foreign, 65534, -1)
    else:
        foreign.rename(tmp_path / "foreign")
    stay = set(tmp_path.iterdir()) - {left}
    (left / "a" / "b").mkdir(parents=True)
    with patch("shutil.rmtree"):  # as where a process of Ray still writes into the folder
        assert remove_left_over(PREFIX, str(tmp_path), kept_seconds=60) == []
    assert remove_left_over(PREFIX, str(tmp_path), kept_seconds=60) == [left]
    assert set(tmp_path.iterdir()) == stay
    os.utime(kept / OWNER, (0, 0))
    assert remove_left_over(PREFIX, str(tmp_path), kept_seconds=60) == [kept]
    assert set(tmp_path.iterdir()) == stay - {kept}
    assert (elsewhere / OWNER).exists()


def test_many_starts_at_once_take_no_folder_from_each_other(tmp_path: Path) -> None:
    missing: list[Path] = []

    def start() -> None:
        for _ in range(30):
            remove_left_over(PREFIX, str(tmp_path))
            with owned_folder(PREFIX, str(tmp_path)) as folder:
                remove_left_over(PREFIX, str(tmp_path))
                if not folder.is_dir() or not (folder / OWNER).exists():
                    missing.append(folder)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert missing == []
