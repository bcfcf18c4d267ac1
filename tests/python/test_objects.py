"""Objects of one's own as arguments: a program that defines them, on a real run, and what is refused."""

import json
import os
import subprocess
import sys
import threading
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline import Run, label, open_run
from pipeline.__main__ import main
from pipeline.config.label import EstimatorConfig, GraderConfig
from pipeline.core.errors import PluginError, UsageError
from pipeline.core.registry import GivenObject
from pipeline.estimators.base import Estimator
from pipeline.estimators.registry import ESTIMATORS
from pipeline.examples.estimator import HalvesConfig
from pipeline.examples.policy import EchoConfig
from pipeline.graders.registry import GRADERS
from pipeline.runtime.objects import given, offered, packed, settings_of
from tests.conftest import ROOT
from tests.python.calls import QUICK, ROWS
from tests.python.implementations import Echo, Halves, YesNo


def program(text: str, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a text as a main program, from another folder than that of the package."""
    file = folder / "program.py"
    file.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(file), *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of three objects, all of a program's own classes, and its export by an object."""
    folder = tmp_path_factory.mktemp("objects")
    text = (ROOT / "tests/python/implementations.py").read_text()
    done = program(text, folder, str(folder / "run"), str(folder / "out"))
    assert done.returncode == 0, done.stderr
    (folder / "stated.json").write_text(done.stdout)
    return folder


@pytest.mark.slow
@pytest.mark.ray
def test_a_program_gives_objects_of_its_own_classes(made: Path) -> None:
    stated = json.loads((made / "stated.json").read_text())
    recorded = stated["recorded"]
    assert (recorded["estimator.name"], recorded["estimator.share"]) == ("halves", 0.25)
    assert (recorded["policy.kind"], recorded["policy.prefix"], recorded["grader.kind"]) == ("echo", "yes ", "yes_no")
    for section, name in (("estimator", "Halves"), ("policy", "Echo"), ("grader", "YesNo")):
        assert recorded[f"{section}.plugin"].startswith(f"object __main__.{name} ")
        assert recorded[f"{section}.plugin"].endswith("(given in Python, cannot be repeated elsewhere)")
    # "yes" is always right or always wrong, so the second round is never due: a quarter of eight rollouts.
    assert stated["rollouts"] == [[2, 2, 0]] * 4
    assert all(text.startswith("yes ") for text in stated["texts"])
    assert stated["verdicts"] == ["correct", "incorrect"]
    assert stated["now"] == 4 * 3 * 2
    assert stated["sound"]
    assert stated["relabelled"] == stated["exported"] == 4
    exported = [json.loads(line) for line in (made / "out" / "train.jsonl").read_text().splitlines()]
    assert [set(row) for row in exported] == [{"problem", "good"}] * 4
    pickled = [b"cloudpickle", *(b64encode(bytes(shift) + b"cloudpickle")[4:-4] for shift in range(3))]
    files = [each.read_bytes() for each in made.rglob("*") if each.is_file()]
    assert not [each for each in files if any(mark in each for mark in pickled)], "no file holds an object"


@pytest.mark.slow
def test_the_command_line_says_what_needs_the_object_and_does_what_does_not(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["audit"], ["relabel", "estimator.rule=any"], ["regrade", "grader.deadline_seconds=2"]):
        assert main([*command, f"run_dir={made / 'run'}"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "given in Python, cannot be repeated elsewhere" in line
        assert "open_run(RUN_DIR" in line
    assert main(["grow", f"run_dir={made / 'run'}", "grow.budget=9"]) == 2
    assert "is the object __main__.Echo" in capsys.readouterr().err
    for command in (["status"], ["report"], ["chains"], ["export", "format=trl", f"out={made / 'trl'}"]):
        assert main([*command, f"run_dir={made / 'run'}"]) == 0, capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.ray
def test_a_changed_class_or_state_is_another_run(made: Path) -> None:
    text = (ROOT / "tests/python/implementations.py").read_text()
    for before, after, where in (
        ("lambda have: max(0, first", "lambda have: max(1, first", "estimator.plugin was"),
        ('WORDS = ("yes", "no")', 'WORDS = ("yes", "no", "maybe")', "grader.plugin was"),
        ('EchoConfig(prefix="yes ")', 'EchoConfig(prefix="no ")', "policy.prefix was"),
    ):
        assert before in text
        done = program(text.replace(before, after), made, str(made / "run"), str(made / "out"))
        assert "RunConflict" in done.stderr, done.stderr
        assert where in done.stderr
    moved = "# A comment moves every line.\n\n" + text.replace(
        "def first_round", "def unused() -> None: ...\n\n\ndef first_round"
    )
    done = program(
        moved.replace("run.export(replace(GOOD_STEPS.layout, row=row), out).chains", "0"),
        made,
        str(made / "run"),
        str(made / "out"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["now"] == 0, "what a program of the same code had done"


@pytest.mark.slow
def test_labels_of_a_run_are_made_by_an_object_and_by_ours_again(own: Run) -> None:
    halves = Halves(HalvesConfig(share=0.5, threshold=0.9))
    with pytest.raises(UsageError, match=r"lasting_drop.*estimator\.name=halves.*or estimator\.rule=any"):
        own.relabel(estimator=halves)
    made = own.relabel(estimator=halves, **{"estimator.rule": "any"})
    assert made.chains == 6
    assert own.settings["estimator.name"] == "halves"
    assert str(own.settings["estimator.plugin"]).startswith("object ")
    with pytest.raises(UsageError, match=r"is the object .*\.Halves .*give the same object in Python"):
        own.relabel(**{"estimator.rule": "threshold"})
    assert open_run(own.run_dir, estimator=Halves).relabel(**{"estimator.rule": "threshold"}).chains == 6
    own.relabel(estimator="fixed")
    assert own.settings.get("estimator.name") == "fixed"
    assert not {"estimator.plugin", "estimator.share"} & own.settings.keys()
    assert own.audit().sound


@pytest.mark.slow
def test_the_same_call_with_the_same_objects_has_nothing_to_do(tmp_path: Path) -> None:
    asked: dict[str, Any] = {**QUICK, "run_dir": tmp_path / "run", "estimator": Halves(HalvesConfig(share=0.5))}
    assert label(ROWS[:2], **asked).summary.now.rollouts > 0
    assert label(ROWS[:2], **asked).summary.now.rollouts == 0


class Failing(Halves):
    def next_rollouts(self, *_arguments: object) -> Any:
        raise ZeroDivisionError("nothing to divide")


def test_an_object_that_fails_is_named_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"estimator failing.* of object .*Failing.* ZeroDivisionError") as raised:
        label(ROWS[:2], **{**QUICK, "run_dir": tmp_path / "run", "estimator": Failing(EstimatorConfig())})
    assert len(str(raised.value).splitlines()) == 1


class WithLock(Halves):
    def __init__(self, settings: HalvesConfig) -> None:
        super().__init__(settings)
        self.lock = threading.Lock()


class WithoutValues(Estimator):
    def next_rollouts(self, *_arguments: object) -> Any:
        return []


@pytest.mark.parametrize(("asked", "words"), [
    ({"estimator": 3}, r"estimator: give a name, a dict of settings, or an object .* not int"),
    ({"estimator": object()}, "not object"),
    ({"grader": Halves}, "GraderConfig"),
    ({"estimator": WithoutValues}, r"WithoutValues cannot be made .* abstract method values"),
    ({"estimator": WithLock(HalvesConfig())}, r"estimator: the object cannot be sent .*lock.*Open files, locks"),
    ({"policy": Echo(EchoConfig()), "cluster.address": "auto"}, "for one machine"),
    ({"estimator": Halves(HalvesConfig(share=0.3)), "estimator.shares": 1}, "did you mean estimator.share"),
])  # fmt: skip
def test_what_is_no_object_of_a_kind_is_refused(tmp_path: Path, asked: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        label(ROWS, run_dir=tmp_path / "run", **{**QUICK, **asked})
    assert not (tmp_path / "run").exists()


def test_settings_of_an_object_are_settings_of_the_call() -> None:
    own = Halves(HalvesConfig(share=0.3, threshold=0.7))
    assert settings_of(given("estimator", own)) == {
        "estimator": "halves",
        "estimator.threshold": 0.7,
        "estimator.share": 0.3,
    }
    echo = EchoConfig()
    echo.prompt.system = "Be brief."
    assert settings_of(given("policy", Echo(echo)))["policy.prompt.system"] == "Be brief."


def test_a_class_without_settings_of_its_own_is_named_after_itself() -> None:
    assert given("grader", YesNo).name == "yes_no"
    assert given("grader", YesNo(GraderConfig(deadline_seconds=2))).source.made.settings.deadline_seconds == 2


def test_a_name_stands_for_one_object_at_a_time() -> None:
    one, other = given("estimator", Halves), given("estimator", HalvesAgain())
    with offered([one]), offered([one]):
        assert ESTIMATORS.names()[-1] == "halves"
        with pytest.raises(UsageError, match="another call of this process"), offered([other]):
            pass
    assert "halves" not in ESTIMATORS.names()
    with offered([other]):
        pass


def test_a_name_of_ours_is_not_taken() -> None:
    own = GivenObject(made=None, loaded=Halves, make=lambda settings: settings, where="x.Y", code="0")
    with pytest.raises(UsageError, match="there is another estimator fixed"), ESTIMATORS.offer("fixed", own):
        pass


def test_an_object_that_holds_more_keeps_it_and_refuses_other_settings() -> None:
    own = YesNo(GraderConfig(), words=("ja", "nein"))
    each = given("grader", own)
    with offered([each]):
        config = each.source.made.settings
        same = GRADERS.create("yes_no", config)
        assert same.parses(["ja"]) == [True]
        more = GRADERS.create("yes_no", GraderConfig(kind="yes_no", processes=3))
        assert more.parses(["ja"]) == [True]
        with pytest.raises(UsageError, match="the object holds words besides its settings"):
            GRADERS.create("yes_no", GraderConfig(kind="yes_no", deadline_seconds=5))


def test_the_record_of_an_object_is_made_where_it_is_given() -> None:
    each = given("grader", YesNo(GraderConfig(), words=("ja", "nein")))
    (received,), config = packed([each]).unpacked()
    assert config is None
    assert str(received.source) == str(each.source)
    assert received.source.made.words == ("ja", "nein")
    assert str(given("grader", YesNo(GraderConfig())).source) != str(each.source)


def HalvesAgain() -> Halves:  # noqa: N802  a class in another scope
    @dataclass(kw_only=True, slots=True)
    class OtherConfig(HalvesConfig):
        pass

    class Other(Halves):
        Config = OtherConfig

    return Other(OtherConfig())
