"""Fixtures with checkers of programs. Their tests are skipped if this machine cannot confine programs."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pipeline.config.choices import Sandbox
from pipeline.core.errors import StepvalueError
from pipeline.graders.base import Checker
from pipeline.graders.code.checker import CodeChecker
from pipeline.graders.code.sandbox import landlock_version
from pipeline.graders.registry import checker_for
from pipeline.graders.settings import CodeConfig
from tests.settings import grader_settings

HAS_LANDLOCK = landlock_version() > 0
CPU_SECONDS = 1.0
DEADLINE = 12.0


def code_config(**settings: object) -> CodeConfig:
    """Settings for small programs, as strict as the machine allows."""
    defaults: dict[str, Any] = {
        "kind": "code",
        "cpu_seconds": CPU_SECONDS,
        "deadline_seconds": DEADLINE,
        "memory_mib": 512,
        "relative_tolerance": 1e-6,
        "sandbox": Sandbox.full if HAS_LANDLOCK else Sandbox.standard,
    }
    found: CodeConfig = grader_settings(**(defaults | settings))
    return found


def keeper_of(checker: CodeChecker) -> psutil.Process:
    """The process of the checker's first child."""
    process = checker._children[0].process
    assert process is not None
    return psutil.Process(process.pid)


@pytest.fixture(scope="session")
def checker() -> Iterator[Checker]:
    """One checker of mathematics for all tests that do not change it. No answer of theirs takes as long as its deadline."""
    with checker_for(grader_settings(deadline_seconds=20.0)) as made:
        yield made


@pytest.fixture(scope="session")
def code_checker() -> Iterator[CodeChecker]:
    """One checker for all tests that do not change it."""
    try:
        checker = CodeChecker(code_config())
    except StepvalueError as error:
        pytest.skip(str(error))
    with checker:
        yield checker


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for this test alone, in which all temporary folders are created."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def own_checker(temporary: Path, code_checker: CodeChecker) -> Iterator[Callable[..., CodeChecker]]:
    """Creates checkers whose folders are in `temporary`, and closes them."""
    made: list[CodeChecker] = []

    def make(**settings: object) -> CodeChecker:
        made.append(CodeChecker(code_config(**settings)))
        return made[-1]

    yield make
    for checker in made:
        checker.close()
