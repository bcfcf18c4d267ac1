"""Command lines that were accepted are, and what is refused is refused in the same words. Nothing of them is run."""

import re
from typing import Any

import pytest
import yaml

from pipeline.cli import COMMANDS as CLI
from tests.guard.lines import (
    COMMANDS,
    NAMES_OF_OTHERS,
    WITHOUT_VALUE,
    composed,
    dotted,
    every_key,
    keys_of_options,
    refusal,
)
from tests.guard.record import stored

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ours_alone")]

LINES: dict[str, list[str]] = stored("command_lines")
NO_SETTINGS = {"data", "policy", "sampling", "estimator", "grader", "run", "cluster", "plan"}
"""Words that choose a group, where the setting of that name is a section."""
REMARK = "has no effect: it is a setting of"
"""What may be said of a line that is accepted."""
LIKE_LABEL = ("doctor", "plan", "grow", "score", "agree")
"""Commands whose lines say what others say of `label`, in the sections that commands share."""


def _is_like_another(kind: str, line: str) -> bool:
    command = line.split(" ")[0]
    return (kind == "keys" and command in LIKE_LABEL) or (kind == "groups" and command not in ("label", "search"))


def _fault(kind: str, line: str) -> str:
    """What is wrong with the answer to a line; empty if nothing is."""
    code, out, said = composed(line)
    if code or not all(REMARK in line for line in said.splitlines()):
        return said
    if kind == "realistic":
        settings = dotted(yaml.safe_load(out))
        command, *words = line.split(" ")
        for word in words:
            key, equals, value = word.partition("=")
            plain = equals and key not in NO_SETTINGS and "'" not in value and "[" not in value
            key = CLI[command].short.get(key, key)
            if plain and not _same(settings[key], value):
                return f"{key} is {settings[key]}"
    return ""


def _faults(kind: str, lines: list[str]) -> dict[str, str]:
    return {line: fault for line in lines if (fault := _fault(kind, line))}


@pytest.mark.parametrize("kind", LINES)
def test_command_lines_are_accepted(kind: str) -> None:
    assert not _faults(kind, [line for line in LINES[kind] if not _is_like_another(kind, line)])


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["keys", "groups"])
def test_command_lines_that_are_like_others_are_accepted(kind: str) -> None:
    assert not _faults(kind, [line for line in LINES[kind] if _is_like_another(kind, line)])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_setting_stands_in_a_line_that_is_accepted(command: str) -> None:
    """After a new setting: `python -m tests.guard.record command_lines`."""
    given = {
        word.partition("=")[0] for line in LINES["keys"] if line.split(" ")[0] == command for word in line.split(" ")
    }
    assert set(every_key(command)) - given <= {*NAMES_OF_OTHERS, *WITHOUT_VALUE.get(command, ())}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_setting_that_was_there_is(command: str) -> None:
    """Of the implementation that is chosen its own, and those of the others where they are chosen."""
    assert set(stored("settings")[command]) <= keys_of_options(command)


def test_refusals_have_the_same_words() -> None:
    expected: dict[str, str] = stored("refused")
    found = {line: _without_lists(refusal(line)) for line in expected}
    assert found == {line: _without_lists(message) for line, message in expected.items()}


def _without_lists(message: str) -> str:
    """Lists of all implementations grow with each new one."""
    return re.sub(r"(choose from|There are) .*", r"\1 ...", message)


def _same(found: Any, given: str) -> bool:
    """Whether a printed setting is what was written."""
    wanted = yaml.safe_load(given)
    return bool(found == wanted or str(found) == given or (isinstance(found, float) and found == float(given)))
