"""`-h`: one screen for the program and for each command, with examples that are command lines and settings that exist."""

import shlex
import subprocess
import sys

import pytest

from pipeline.__main__ import main
from pipeline.cli import COMMANDS
from pipeline.cli.help import MOST_SETTINGS
from pipeline.cli.options import groups
from pipeline.cli.reference import command_settings
from tests.conftest import ROOT

pytestmark = pytest.mark.usefixtures("ours_alone")

LINES = 24


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(arguments) == 0
    written = capsys.readouterr()
    assert written.err == ""
    return written.out.splitlines()


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("name", ["", "completion", *COMMANDS])
def test_help_fits_a_screen(
    name: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = shown(capsys, *([name] if name else []), "-h")
    assert len(lines) <= LINES
    assert [line for line in lines if len(line) > columns] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_stay_command_lines_where_they_are_continued(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(shown(capsys, name, "--help-all"))
    lines = [
        shlex.split(line) for line in text.replace("\\\n", " ").splitlines() if line.startswith("  python -m pipeline")
    ]
    examples = [shlex.split(example.replace("\\\n", " ")) for example in COMMANDS[name].examples]
    assert lines[: len(examples)] == [["python", "-m", "pipeline", *words] for words in examples]


def test_agree_offers_only_data_with_step_labels(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("-h", "--help-all"):
        text = " ".join(" ".join(shown(capsys, "agree", option)).split())
        assert "math_shepherd prm800k prmbench processbench rows" in text.replace(",", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_settings_used_most_exist_and_stand_in_the_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = COMMANDS[name]
    known = {setting.key for _, found in command_settings(command) for setting in found} | groups(command).keys()
    assert set(command.most_used) <= known
    assert len(set(command.most_used)) == len(command.most_used) <= MOST_SETTINGS
    lines = shown(capsys, name, "-h")
    (heading,) = [number for number, line in enumerate(lines) if line.startswith("settings used most")]
    rows = [line.split() for line in lines[heading:] if line.startswith("  ")]
    for key in command.most_used:
        (row,) = [row for row in rows if row[0].startswith(f"{key}=")]
        assert len(row) > 1, f"{key} has no meaning"


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_command_lines(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = COMMANDS[name]
    assert any(example.startswith(f"{name} ") for example in command.examples)
    for example in command.examples:
        words = shlex.split(example.partition(" | ")[0].replace("\\\n", " "))
        if command.continues:
            # It reads the settings of that run.
            words = [word for word in words if not word.startswith("run_dir=")]
        shown(capsys, *words, "--cfg", "job")


@pytest.mark.parametrize("name", COMMANDS)
def test_all_of_the_help_holds_what_the_short_help_leaves_out(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = COMMANDS[name]
    text = "\n".join(shown(capsys, name, "--help-all"))
    assert " ".join(command.notes.split()) in " ".join(text.split())


def test_help_shows_a_default_and_the_options_of_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(" ".join(shown(capsys, "label", "-h")).split())
    assert " sampling.rollouts=8 Rollouts (sampled completions) per prefix. " in text
    assert " policy=embedded " in text
    assert " Options: embedded, hf, openai, oracle. " in text
    assert " data=processbench " in " ".join(shown(capsys, "agree", "-h"))


@pytest.mark.parametrize("words", [["label", "-h"], ["__complete", "label", "policy="], ["-h"]])
def test_what_answers_at_a_prompt_loads_nothing_slow(words: list[str]) -> None:
    slow = ["hydra", "torch", "ray", "vllm", "polars", "scipy", "transformers"]
    code = f"""if True:
        import sys
        from pipeline.__main__ import main
        assert main({words}) == 0
        print(sorted(set({slow}) & sys.modules.keys()))
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
