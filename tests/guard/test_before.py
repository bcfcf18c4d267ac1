"""Run directories made before: every command reads them, and `label` knows them for the runs they are."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.core.schemas import SCHEMA_VERSION
from tests.guard.digests import settings
from tests.guard.old import BEFORE, OLD, SETTINGS, all_used, copied, placed
from tests.guard.record import stored
from tests.guard.terminal import Terminal

pytestmark = pytest.mark.slow

Found = dict[str, dict[str, Any]]


USUAL = ("fixed", "default", "stopped", "programs")
"""Those that `make test` looks at; `make nightly` looks at those of other estimators too."""
OTHERS = tuple(name for name in OLD if name not in USUAL)


@pytest.fixture(scope="module")
def found(terminal: Terminal, tmp_path_factory: pytest.TempPathFactory) -> Found:
    return all_used(terminal, tmp_path_factory.mktemp("old"), USUAL)


def confined(made: dict[str, Any]) -> None:
    """Skip where this machine cannot confine programs."""
    if "sandbox" in made.get("refusal", ""):
        pytest.skip(made["refusal"])


def is_as_stored(name: str, found: Found) -> None:
    for step, made in stored(f"before-{name}").items():
        assert found[name][step] == made, step
    assert found[name]["run.json after"] == found[name]["run.json"]


@pytest.mark.parametrize("name", USUAL)
def test_commands_make_the_same_of_an_old_run(name: str, found: Found) -> None:
    confined(found.get(f"{name} new", {}))
    is_as_stored(name, found)


@pytest.mark.nightly
def test_commands_make_the_same_of_old_runs_of_other_estimators(terminal: Terminal, tmp_path: Path) -> None:
    found = all_used(terminal, tmp_path, OTHERS)
    for name in OTHERS:
        is_as_stored(name, found)


@pytest.mark.parametrize("name", [name for name, old in OLD.items() if old.compared])
def test_a_new_run_with_the_same_command_is_the_same_run(name: str, found: Found) -> None:
    new = found[f"{name} new"]
    confined(new)
    assert new["settings"] == {**settings(BEFORE / name), "schema": SCHEMA_VERSION}
    for kind in ("labels", "rollouts", "inputs"):
        assert found[name]["upgrade"][kind] == new[kind]


def test_what_was_stopped_becomes_what_was_not(found: Found) -> None:
    assert found["stopped"]["upgrade"]["labels"] == found["fixed"]["upgrade"]["labels"]


def test_another_run_is_reported_from_an_old_one(terminal: Terminal, tmp_path: Path) -> None:
    placed(tmp_path)
    copied(OLD["fixed"], tmp_path)
    line = f"label {SETTINGS} estimator=fixed run.unit_problems=4 sampling.temperature=0.5 run_dir=fixed"
    (answer,) = terminal.run(tmp_path, [line])
    assert answer.code != 0
    assert "sampling.temperature was 1.0, now 0.5" in answer.err
