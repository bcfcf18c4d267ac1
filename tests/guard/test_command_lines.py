"""Command lines that were accepted are, and what is refused is refused in the same words. Nothing of them is run."""

import re
from typing import Any

import pytest
import yaml

from pipeline.config.renamed import current_overrides, current_settings
from tests.guard.lines import COMMANDS, REQUIRED, composed, dotted, each_key, refusal
from tests.guard.record import stored

pytestmark = pytest.mark.slow

LINES: dict[str, list[str]] = stored("command_lines")
NO_SETTINGS = {"data", "policy", "sampling", "estimator", "grader", "run", "cluster", "plan"}
"""Words that choose a group, where the setting of that name is a section."""
OPTIONS = (
    "policy=oracle",
    "policy=hf policy.model=x",
    "policy=openai policy.model=x policy.openai.urls=[http://h/v1]",
    "estimator=fixed",
    "estimator=first_success",
    "estimator=pooled",
    "grader=code",
    "format=preference",
)
"""Implementations of which each has settings of its own."""
SECTIONS = {
    "label": ("policy", "estimator", "grader"),
    "plan": ("policy", "estimator", "grader"),
    "grade": ("grader",),
    "score": ("grader",),
    "export": ("format",),
}

REMARKS = ("has no effect: it is a setting of", "is now called")
"""What may be said of a line that is accepted."""


def _is_like_another(kind: str, line: str) -> bool:
    """Whether the line says what another one does of `label`, in the sections that commands share."""
    return kind in ("keys", "groups") and line.split(" ")[0] in ("plan", "score", "agree")


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        pytest.param(kind, line, marks=pytest.mark.nightly if _is_like_another(kind, line) else ())
        for kind, lines in LINES.items()
        for line in lines
    ],
)
def test_a_command_line_is_accepted(kind: str, line: str) -> None:
    code, out, said = composed(line)
    command, *words = line.split(" ")
    current, _ = current_overrides(command, words)
    assert code == 0, said
    assert all(any(remark in line for remark in REMARKS) for line in said.splitlines()), said
    if kind == "realistic":
        settings = yaml.safe_load(out)
        for word in current:
            key, equals, value = word.partition("=")
            if equals and key not in NO_SETTINGS and "'" not in value and "[" not in value:
                assert _same(dotted(settings)[key], value), word


@pytest.mark.parametrize("command", COMMANDS)
def test_every_setting_has_a_value_that_can_be_recorded(command: str) -> None:
    for line in each_key(command):
        code, _, said = composed(line)
        assert code == 0, said


@pytest.mark.parametrize("line", [f"{command} {REQUIRED[command]}" for command in COMMANDS])
def test_a_setting_that_was_there_is(line: str) -> None:
    """Of the implementation that is chosen its own, and those of the others where they are chosen."""
    command, printed = line.split(" ")[0], set()
    for option in ("", *(option for option in OPTIONS if option.partition("=")[0] in SECTIONS.get(command, ()))):
        code, out, said = composed(f"{line} {option}".strip())
        assert code == 0, said
        printed |= set(dotted(yaml.safe_load(out)))
    assert set(current_settings(command, dict.fromkeys(stored("settings")[command]))) <= printed


@pytest.mark.parametrize(("line", "message"), stored("refused").items())
def test_a_refusal_has_the_same_words(line: str, message: str) -> None:
    assert _without_lists(refusal(line)) == _without_lists(message)


def _without_lists(message: str) -> str:
    """Lists of all implementations grow with each new one."""
    return re.sub(r"(choose from|There are) .*", r"\1 ...", message)


def _same(found: Any, given: str) -> bool:
    """Whether a printed setting is what was written."""
    wanted = yaml.safe_load(given)
    return bool(found == wanted or str(found) == given or (isinstance(found, float) and found == float(given)))
