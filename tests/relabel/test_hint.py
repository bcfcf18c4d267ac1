"""Other settings for the labels of a run, given to `label`: the message names the command that makes these labels."""

import shlex
from pathlib import Path

import pytest
import yaml

from pipeline.__main__ import main
from pipeline.core.errors import RunConflict
from pipeline.estimators.registry import ESTIMATORS
from pipeline.runtime.driver import check_place, place_of
from pipeline.storage.location import storage_at
from pipeline.storage.stored_run import finished_run
from tests.audit.runs import config, labelled
from tests.conftest import ROOT
from tests.library import Library

pytestmark = pytest.mark.slow

OTHER = ("estimator.rule=threshold", "estimator.threshold=0.4", "estimator.after_error=negative")


def refusal(folder: Path, *overrides: str) -> str:
    with pytest.raises(RunConflict) as raised:
        check_place(place_of(config(folder, *overrides)))
    return str(raised.value)


def test_the_command_in_the_message_makes_the_wanted_labels(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = library.copy("mixed", tmp_path)
    said = refusal(tmp_path, *OTHER)
    assert "belongs to another run" in said
    before, _, command = said.partition("without a model: ")
    assert before.endswith("This makes such labels from the rollouts of the run, ")
    words = shlex.split(command)
    assert words == ["relabel", f"run_dir={run_dir}", *sorted(OTHER)]
    assert main(words) == 0, capsys.readouterr().err
    wanted = place_of(config(tmp_path, *OTHER)).identity
    made = finished_run(storage_at(str(run_dir))).settings
    assert {key: made[key] for key in made} == {key: wanted[key] for key in made}


@pytest.mark.parametrize("name", ESTIMATORS.ours)
def test_what_an_option_sets_is_known(name: str) -> None:
    """Where a file in `conf/estimator` changes, so does `OPTION` of its settings."""
    loaded = yaml.safe_load((ROOT / f"conf/estimator/{name}.yaml").read_text())
    assert loaded == {"name": name, **ESTIMATORS.settings(name).OPTION}


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        (["estimator=first_success"], ["estimator=first_success"]),
        (["estimator=pooled"], ["estimator=pooled"]),
        (["estimator=pooled", "estimator.rule=any"], ["estimator=pooled", "estimator.rule=any"]),
        (["estimator=pooled", "estimator.confidence=0.9"], ["estimator.confidence=0.9", "estimator=pooled"]),
    ],
)
def test_another_estimator_is_named_without_its_defaults(
    wanted: list[str], line: list[str], library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = library.copy("mixed", tmp_path)
    said = refusal(tmp_path, *wanted)
    _, _, command = said.partition("without a model (leave out ")
    option, _, command = command.partition(" to keep its estimator, fixed): ")
    assert option == wanted[0]
    words = shlex.split(command)
    assert sorted(words) == sorted(["relabel", f"run_dir={run_dir}", *line])
    assert main(words) == 0, capsys.readouterr().err
    identity = place_of(config(tmp_path, *wanted)).identity
    made = finished_run(storage_at(str(run_dir))).settings
    of_labels = [key for key in made if key.startswith("estimator.") and key in identity]
    assert {"estimator.interval", "estimator.rule", "estimator.threshold"} <= set(of_labels)
    assert {key: made[key] for key in of_labels} == {key: identity[key] for key in of_labels}


def test_settings_of_the_grader_are_a_matter_of_regrade(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library.copy("mixed", tmp_path)
    said = refusal(tmp_path, "grader.answer_pattern='is (\\d+)'", "estimator.confidence=0.9")
    words = shlex.split(said.partition("without a model: ")[2])
    assert words[0] == "regrade"
    assert main(words) == 0, capsys.readouterr().err
    assert finished_run(storage_at(str(tmp_path / "run"))).settings["grader.answer_pattern"] == "is (\\d+)"


def test_an_unfinished_run_is_finished_first(library: Library, tmp_path: Path) -> None:
    run_dir = library.copy("mixed", tmp_path)
    next((run_dir / "commits").glob("unit-*-00001.json"), next((run_dir / "commits").glob("unit-*"))).unlink()
    said = refusal(tmp_path, *OTHER)
    assert "Finish the run with its own settings first; then this makes such labels without a model: relabel" in said


@pytest.mark.parametrize(
    "other",
    [
        ["sampling.temperature=0.5"],
        ["sampling.temperature=0.5", *OTHER],
        ["policy.oracle.seed=7"],
        ["estimator=first_success", "estimator.successes=2"],
    ],
)
def test_labels_that_need_other_rollouts_have_no_such_command(other: list[str], tmp_path: Path) -> None:
    labelled(tmp_path, "estimator=first_success")
    rest = [] if "estimator=first_success" in other else ["estimator=first_success"]
    said = refusal(tmp_path, *rest, *other)
    assert "belongs to another run" in said
    assert "without a model" not in said


def test_a_directory_that_cannot_be_read_is_refused_as_before(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    assert refusal(tmp_path).endswith("choose an empty or new run_dir")
