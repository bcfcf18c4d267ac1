"""The file with an engine's output: who writes to it, who can read it, and how long it stays."""

import logging
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.engines.vllm.engine_log import CLOSED, EngineLog, holds_wanted_logs


def test_processes_of_the_engine_write_to_it_also_after_the_start(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = EngineLog(tmp_path)
    with log.capture():
        child = subprocess.Popen(
            [sys.executable, "-c", "print('loading'); input(); print('dying')"], stdin=subprocess.PIPE
        )
    print("of this process")
    log.mark()
    child.communicate(b"\n")
    assert log.text == "loading\ndying\n"  # Python wrote both lines at its end
    assert capfd.readouterr().out == "of this process\n"
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    log.close()
    assert log.path.exists()


@pytest.mark.parametrize(("size", "shown"), [(0, 3), (1000, 1003), (3_000_000, 2 * 1024 * 1024)])
def test_text_begins_at_the_mark_and_ends_with_the_end(tmp_path: Path, size: int, shown: int) -> None:
    log = EngineLog(tmp_path)
    with log.path.open("ab") as file:
        file.write(b"before\n")
        file.flush()
        log.mark()
        file.write(b"x" * size + b"end")
        file.flush()
    assert log.text.endswith("end")
    assert "before" not in log.text
    assert len(log.text) == shown
    log.close()
    log.close()


def test_logs_are_wanted_of_engines_that_died_or_that_a_message_names(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    closed, named = EngineLog(tmp_path / "a"), EngineLog(tmp_path / "b")
    assert holds_wanted_logs(tmp_path), "an engine that is killed does not close its log"
    closed.close()
    assert not holds_wanted_logs(tmp_path / "a")
    assert named.named() == named.path
    named.close()
    assert holds_wanted_logs(tmp_path)
    assert not holds_wanted_logs(tmp_path / "none")


def test_without_a_folder_it_goes_with_the_engine() -> None:
    log = EngineLog(None)
    assert not log.is_kept
    log.close()
    assert not log.path.exists()
    assert log.text == ""


def test_vllm_s_logger_writes_to_it_alone_until_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("vllm")
    monkeypatch.setattr(logger, "handlers", [logging.NullHandler()])
    log = EngineLog(tmp_path)
    log.take_logger()
    logger.error("the engine stops")
    log.close()
    logger.error("later")
    assert log.path.read_bytes() == b"the engine stops\n" + CLOSED
    assert logger.handlers == []
