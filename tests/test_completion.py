"""Completion: what `__complete` answers, and the scripts in the shells that are installed here."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from pipeline.__main__ import main
from pipeline.cli import COMMANDS
from pipeline.cli.complete import FILES, PATHS, SHELLS
from pipeline.cli.reference import command_settings
from pipeline.core.registry import Registry
from pipeline.export.registry import EXPORTS
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ours_alone")]

PATIENCE_SECONDS = 60.0
WORDBREAKS = " \t\n\"'><=;|&(:"


def completed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The candidates for the last word."""
    assert main(["__complete", *words]) == 0
    written = capsys.readouterr()
    assert written.err == ""
    return [line.partition("\t")[0] for line in written.out.splitlines()]


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        (["re"], ["relabel", "regrade", "report"]),
        (["--v"], ["--version"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["completion", "bash", ""], []),
        (["nonsense", ""], []),
        (["label", "policy="], ["policy=embedded", "policy=hf", "policy=openai", "policy=oracle"]),
        (
            ["agree", "data="],
            [f"data={each}" for each in ("math_shepherd", "prm800k", "prmbench", "processbench", "rows")],
        ),
        (["label", "data=m"], ["data=math", "data=math_shepherd", "data=mbpp"]),
        (["label", "sampling.top"], ["sampling.top_p=", "sampling.top_k="]),
        (["label", "pol"], ["policy=", "policy."]),
        (["label", "policy.o"], ["policy.openai.", "policy.oracle."]),
        (["label", "policy=hf", "policy.o"], []),
        (["label", "policy=openai", "policy.o"], ["policy.openai."]),
        (["label", "policy.model=x", "policy.o"], []),
        (["label", "policy.openai.re"], ["policy.openai.retries="]),
        (["label", "policy.enforce_eager="], [f"policy.enforce_eager={each}" for each in ("true", "false", "null")]),
        (["label", "run.track=w"], ["run.track=wandb"]),
        (["label", "estimator.name=bi"], ["estimator.name=bisect"]),
        (["label", "policy.ki"], ["policy.kind="]),
        (["label", "policy.kind=or"], ["policy.kind=oracle"]),
        (["search", "search.method=m"], ["search.method=majority", "search.method=mcts"]),
        (["search", "search.ex"], ["search.exploration="]),
        (["search", "search.method=beam", "search.ex"], []),
        (["search", "search.method=mcts", "search.ex"], ["search.exploration="]),
        (["label", "sampling.rollouts="], []),
        (["label", "nonsense="], []),
        (["label", "run_dir=some"], [FILES]),
        (["label", "data.path="], [FILES]),
        (["label", "--h"], ["--help-all"]),
        (["label", "--cfg", ""], ["job"]),
        (["audit", "--p"], ["--prune"]),
        (["audit", "pr"], ["prune="]),
        (["regrade", "grader.m"], ["grader.memory_mib="]),
        (["export", "format=o"], ["format=openrlhf", "format=openr", "format=orm", "format=omegaprm"]),
        (["export", "format=trl", "pref"], []),
        (["export", "format=preference", "preference.r"], ["preference.reader="]),
        (["export", "preference.reader="], ["preference.reader=trl", "preference.reader=step_dpo"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_candidates(words: list[str], candidates: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert completed(capsys, *words) == candidates


@pytest.mark.parametrize("name", COMMANDS)
def test_every_setting_can_be_reached_and_all_that_is_offered_exists(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """All keys, section by section, from an empty word."""
    found, open_words = set(), [""]
    while open_words:
        for candidate in completed(capsys, name, open_words.pop()):
            if candidate.endswith("."):
                open_words.append(candidate)
            else:
                found.add(candidate.removesuffix("="))
    known = {setting.key for _, settings in command_settings(COMMANDS[name]) for setting in settings}
    groups = {key for key in found if f"{key}=" in completed(capsys, name, key) and key not in known}
    assert known <= found
    assert found - groups <= known
    assert all(completed(capsys, name, f"{group}=") for group in groups)


def test_settings_that_are_completed_as_paths_exist() -> None:
    keys = {setting.key for command in COMMANDS.values() for _, found in command_settings(command) for setting in found}
    assert keys >= PATHS


def test_a_candidate_has_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["__complete", "label", "sampling.rollouts"]) == 0
    assert capsys.readouterr().out == "sampling.rollouts=\tRollouts (sampled completions) per prefix.\n"


def test_no_format_is_loaded_for_a_list_of_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(self: Registry[object], name: str) -> object:
        raise AssertionError(f"{self.noun} {name} is loaded")

    monkeypatch.setattr(Registry, "load", load)
    assert completed(capsys, "export", "format=") == [f"format={name}" for name in EXPORTS.names()]
    assert "preference." in completed(capsys, "export", "")


def test_a_shell_without_a_script_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["completion"], ["completion", "tcsh"], ["completion", "bash", "zsh"]):
        assert main(arguments) == 2
        assert "bash, zsh, fish" in capsys.readouterr().err
    assert main(["completion", "-h"]) == 0
    written = capsys.readouterr().out
    assert all(f"stepvalue completion {shell}" in written for shell in SHELLS)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A `stepvalue` that completes, and else writes down its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    file = folder / "stepvalue"
    file.write_text(
        f"""#!/bin/sh
if [ "$1" = __complete ]; then
    PYTHONPATH='{ROOT}' exec '{sys.executable}' -m pipeline "$@"
fi
printf '%s\\n' "$@" > '{tmp_path}/arguments.part'
mv '{tmp_path}/arguments.part' '{tmp_path}/arguments'
"""
    )
    file.chmod(0o755)
    return file


@cache
def script(shell: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "completion", shell], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def in_bash(
    line: str, program: Path, folder: Path, wordbreaks: str = WORDBREAKS, function: str = "_stepvalue", before: str = ""
) -> list[str]:
    """What the bash function leaves in COMPREPLY for a line with the cursor at its end. `before`: code before the script."""
    breaks = "".join(re.escape(each) for each in wordbreaks if not each.isspace())
    words = [part for word in re.split(r"\s+", line) for part in re.findall(rf"[{breaks}]+|[^{breaks}]+|^$", word)]
    quoted = " ".join(f"'{word}'" for word in words)
    code = f"""
        {before}
        {script("bash")}
        COMP_WORDBREAKS=$BREAKS COMP_LINE='{line}' COMP_POINT={len(line)} COMP_CWORD={len(words) - 1}
        COMP_WORDS=({quoted})
        compopt() {{ :; }}  # bash has it for functions that it calls itself
        {function}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "BREAKS": wordbreaks}
    done = subprocess.run(
        ["bash", "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_gets_what_follows_the_characters_that_it_cuts_words_at(program: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "rules:old").mkdir()
    assert in_bash("stepvalue rel", program, tmp_path) == ["relabel"]
    assert in_bash("stepvalue label policy=o", program, tmp_path) == ["openai", "oracle"]
    assert in_bash("stepvalue label policy=openai policy.o", program, tmp_path) == ["policy.openai."]
    assert in_bash("stepvalue label data.columns.so", program, tmp_path) == ["data.columns.solution="]
    assert in_bash("FOO=1 stepvalue status run_dir=run".partition(" ")[2], program, tmp_path) == ["runs"]
    assert in_bash("stepvalue status run_dir=rules:o", program, tmp_path) == ["old"]
    assert in_bash(f"{program} status json=t", program, tmp_path) == ["true"]
    without = WORDBREAKS.replace("=", "").replace(":", "")
    assert in_bash("stepvalue label policy=o", program, tmp_path, without) == ["policy=openai", "policy=oracle"]
    assert in_bash("stepvalue status run_dir=rules:o", program, tmp_path, without) == ["run_dir=rules:old"]
    assert in_bash("stepvalue label sampling.rollouts=", program, tmp_path) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_the_module_and_leaves_the_rest_of_python_as_it_was(program: Path, tmp_path: Path) -> None:
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "__main__.py").write_text("open('started', 'w')\n")
    own = "_own() { COMPREPLY=(own); }; complete -o nospace -F _own python"
    for python in ("python", f"{program.parent}/python"):
        line = f"{python} -m pipeline label policy=o"
        assert in_bash(line, program, tmp_path, function="_stepvalue_python") == ["openai", "oracle"]
    assert in_bash("python -m pipeline rel", program, tmp_path, function="_stepvalue_python") == ["relabel"]
    for line in ("python -m other rel", "python fil", "python -m pipel"):
        assert in_bash(line, program, tmp_path, function="_stepvalue_python") == []
        assert in_bash(line, program, tmp_path, function="_stepvalue_python", before=own) == ["own"]
    shown = in_bash("python x", program, tmp_path, function="complete -p python", before=own)
    assert shown == ["complete", "-o", "nospace", "-F", "_stepvalue_python", "python"]
    assert not (tmp_path / "started").exists()


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
def test_fish_lists_candidates_with_their_meanings(program: Path, tmp_path: Path) -> None:
    (tmp_path / "stepvalue.fish").write_text(script("fish"))
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    code = "source stepvalue.fish; complete -C 'stepvalue label policy=o'; complete -C 'stepvalue label sampling.roll'"
    done = subprocess.run(
        ["fish", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == [
        "policy=openai",
        "policy=oracle",
        "sampling.rollouts=\tRollouts (sampled completions) per prefix.",
    ]


START = {
    "bash": (["bash", "--rcfile", "rc", "-i"], "rc", 'PS1="ready> "\neval "$(cat script)"\n'),
    "zsh": (["zsh", "-i"], ".zshrc", 'autoload -U compinit\ncompinit -u -D\nPS1="ready> "\neval "$(<script)"\n'),
    "fish": (["fish", "-i"], "config.fish", 'function fish_prompt; echo "ready> "; end\nset -g fish_greeting\nsource script\n'),
}  # fmt: skip


@pytest.mark.parametrize("shell", START)
def test_the_tab_key_completes(shell: str, program: Path, tmp_path: Path) -> None:
    """A person's keys in a terminal: a command, a choice, a key without a blank after it, a folder with a blank."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    command, file, text = START[shell]
    configuration = tmp_path / "fish"
    configuration.mkdir()
    (tmp_path / file).write_text(text)
    (configuration / file).write_text(text)
    (tmp_path / "script").write_text(script(shell))
    (tmp_path / "my folder").mkdir()
    environment = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "ZDOTDIR": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "INPUTRC": "/dev/null",
        "TERM": "xterm",
    }
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execvpe(command[0], command, environment)
    shown = b""
    try:
        shown += until(terminal, lambda seen: b"ready> " in seen)
        os.write(terminal, b"stepvalue lab\tpolicy=orac\tsampling.rollo\t8 run_dir=my\t\n")
        shown += until(terminal, lambda _: (tmp_path / "arguments").exists())
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    assert (tmp_path / "arguments").exists(), shown.decode(errors="replace")
    *arguments, folder = (tmp_path / "arguments").read_text().splitlines()
    assert arguments == ["label", "policy=oracle", "sampling.rollouts=8"]
    # zsh takes the slash away again at the end of a line.
    assert folder.removesuffix("/") == "run_dir=my folder"


def until(terminal: int, reached: Callable[[bytes], bool]) -> bytes:
    """What a terminal shows until it is reached, or for PATIENCE_SECONDS."""
    seen = b""
    end = time.monotonic() + PATIENCE_SECONDS
    while not reached(seen) and time.monotonic() < end:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:  # the shell is gone
                break
    return seen
