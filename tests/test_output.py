"""Names in messages are text to the terminal, whatever they hold."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.__main__ import main
from pipeline.core.formatting import plain_lines
from pipeline.core.output import say
from tests.runtime.without_ray import without_ray

HOSTILE = "red\x1b[31m\x07\x9b2J"


def test_an_error_that_names_a_hostile_path_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["label", f"data.path='/none/{HOSTILE}.jsonl'", "policy=oracle"]) == 2
    printed = capsys.readouterr()
    assert "there is no file or folder /none/red\N{REPLACEMENT CHARACTER}[31m" in " ".join(printed.err.split())
    assert not set("\x1b\x07\x9b") & set(printed.err + printed.out)


def test_the_summary_of_a_hostile_run_dir_is_plain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = f"run_dir='{tmp_path / HOSTILE}'"
    commands = (
        ["label", "data=sample", "data.limit=1", "policy=oracle"],
        ["status"],
        ["audit"],
        ["relabel", "estimator.threshold=0.2"],
        ["export", "format=parquet", f"out='{tmp_path / HOSTILE}-export'"],
    )
    for command in commands:
        with without_ray():
            code = main([*command, run_dir])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        assert "red\N{REPLACEMENT CHARACTER}[31m" in printed.out or command != commands[0]
        assert not set("\x1b\x07\x9b") & set(printed.err + printed.out)


def test_a_line_for_the_user_stays_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"two\nlines {HOSTILE}")
    assert capsys.readouterr().err.count("\n") == 1


@given(st.text())
def test_plain_lines_keep_line_ends_and_lose_control_characters(text: str) -> None:
    plain = plain_lines(text)
    assert len(plain) == len(text)
    assert all(character.isprintable() or character == "\n" for character in plain)
    assert plain_lines(plain) == plain
