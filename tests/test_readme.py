"""What the README calls a command is one, with settings it has."""

import shlex
from pathlib import Path

import pytest

from pipeline.__main__ import main

README = Path(__file__).parents[1] / "README.md"


def commands() -> list[list[str]]:
    """Every call of the command line in blocks of code."""
    blocks = README.read_text(encoding="utf-8").split("\n```")[1::2]
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [
        shlex.split(line.partition("python -m pipeline ")[2], comments=True)
        for line in lines
        if "python -m pipeline " in line
    ]


@pytest.mark.parametrize("command", commands(), ids=lambda command: " ".join(command)[:80])
def test_what_the_readme_says_is_a_command(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--cfg", "job"]) == 0
    assert capsys.readouterr().err == ""
