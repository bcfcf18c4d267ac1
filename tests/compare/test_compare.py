"""Two oracle runs compared: with another estimator, other true values and other settings, and what is refused."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from pipeline.__main__ import main
from pipeline.analysis.compare.comparison import Comparison, verdict
from pipeline.analysis.compare.run import compare_runs
from pipeline.analysis.compare.sections import lines, sections
from pipeline.analysis.relabel import relabel
from pipeline.config.changes import RelabelConfig
from pipeline.config.choices import LabelRule
from pipeline.core.errors import EngineDied, UsageError
from pipeline.core.formatting import format_unfinished
from pipeline.display.document import GENERATOR
from pipeline.display.terminal import show, terminal
from pipeline.engines import oracle
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import claim
from tests.audit.runs import copied
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process
from tests.settings import EstimatorChange, compose_label

pytestmark = pytest.mark.slow

PROBLEMS = 40
HOSTILE = "<script>alert('x')</script>\x1b[31m"
Label = Callable[..., Path]
Printed = pytest.CaptureFixture[str]
OTHER = ("policy.oracle.seed=5", "sampling.temperature=0.7")


def rows(first: int = 0) -> list[dict[str, Any]]:
    """Two chains each that share a step, one of them wrong."""
    return [
        {
            "id": f"{n}-{last}",
            "problem": f"What is {n} + {n} + 1? {HOSTILE} {'long ' * 200}",
            "answer": str(2 * n + 1),
            "steps": [f"{n} + {n} = {2 * n}.", f"{HOSTILE} {2 * n} + 1 = {last}.", f"The answer is {last}."],
        }
        for n in range(first, first + PROBLEMS)
        for last in (2 * n + 1, 2 * n + 3)
    ]


def labelled(folder: Path, *settings: str, given: list[dict[str, Any]] | None = None) -> Path:
    data = write_rows(folder / "rows.jsonl", given or rows())
    small = ["policy=oracle", "estimator=fixed", "estimator.rule=any", "run.unit_problems=20", *settings]
    label_in_process(compose_label([f"data.path={data}", f"run_dir={folder / 'run'}", *small]))
    return folder / "run"


@pytest.fixture(scope="module")
def label(tmp_path_factory: pytest.TempPathFactory) -> Label:
    """A run by its name, labelled once."""
    made: dict[str, Path] = {}

    def run(name: str, *settings: str) -> Path:
        if name not in made:
            made[name] = labelled(tmp_path_factory.mktemp(name), *settings)
        return made[name]

    return run


def compared(a: Path, b: Path) -> Comparison:
    return compare_runs((str(a), str(b)))


def shown(found: Comparison) -> str:
    console = terminal(width=160)
    with console.capture() as captured:
        show([*lines(found), *sections(found)], console)
    return captured.get()


def said(found: Comparison) -> str:
    return verdict(found.shift, found.noise, found.flips)


def test_the_short_form(label: Label) -> None:
    text = shown(compared(label("plain"), label("other", *OTHER)))
    folders = re.sub(r"\S+/(\w+?)\d+/run", r"\1", text)
    golden = Path(__file__).with_name("short_form.txt")
    assert "\n".join(line.rstrip() for line in folders.splitlines()) + "\n" == golden.read_text()


def test_another_estimator_of_the_same_truth_shows_no_shift(label: Label) -> None:
    for estimator in ("pooled", "first_success", "bisect"):
        found = compared(label("plain"), label(estimator, f"estimator={estimator}"))
        shift = found.shift.shift
        assert shift.low is not None
        assert shift.high is not None
        assert shift.low <= 0 <= shift.high
        assert "a shift is not certain" in said(found)
        assert not found.noise.excess.has_value or (found.noise.excess.value or 0) < 0
        assert "estimator.name" in {difference.key for difference in found.differing}
    assert "the effect of noise cannot be computed" in shown(found)


def test_another_truth_shows(label: Label) -> None:
    found = compared(label("plain"), label("other", *OTHER))
    assert [(part.key, part.a, part.b) for part in found.differing if part.key != "policy"] == [
        ("policy.oracle.seed", "0", "5"),
        ("sampling.temperature", "1.0", "0.7"),
    ]
    assert found.noise.excess.has_value
    assert (found.noise.correlation.value or 0) < 0.5
    assert len(found.moved) == 20
    assert found.moved[0]["distance"] == max(part["distance"] for part in found.moved)


def test_the_same_run_twice_is_the_same(label: Label) -> None:
    found = compared(label("plain"), label("plain"))
    assert said(found) == f"values and labels are the same for {found.shift.prefixes} common prefixes"
    assert (found.differing, found.moved, found.flips.flipped.value) == ((), (), 0)
    assert found.overlap.chains == 2 * PROBLEMS
    assert found.overlap.prefixes == found.a.prefixes == found.shift.equal == 4 * PROBLEMS
    assert found.a.rollouts == 8 * found.a.prefixes == found.a.on_common


def test_an_edition_of_labels_differs_in_labels_alone(label: Label, tmp_path: Path) -> None:
    edited = copied(label("plain"), tmp_path)
    relabel(RelabelConfig(run_dir=str(edited), estimator=EstimatorChange(rule=LabelRule.threshold, threshold=0.5)))
    found = compared(label("plain"), edited)
    assert {difference.key for difference in found.differing} == {"estimator.rule"}
    assert found.shift.shift.value == 0
    unlike = round((found.flips.flipped.value or 0) * found.flips.decided)
    assert unlike > 0
    assert said(found) == (
        f"values are the same for {found.shift.prefixes} common prefixes; the labels are made with other settings, so "
        f"{unlike} of {found.flips.decided} differ"
    )


def test_more_rollouts_are_a_difference(label: Label) -> None:
    found = compared(label("plain"), label("more", "sampling.rollouts=12"))
    assert [(part.key, part.a, part.b) for part in found.differing] == [("sampling.rollouts", "8", "12")]


def test_problems_that_are_not_common_are_left_out_and_counted(label: Label, tmp_path: Path) -> None:
    shifted = rows(first=10)
    for row in shifted[:2]:
        row["answer"] = "20.5"
    found = compared(label("plain"), labelled(tmp_path, given=shifted))
    assert found.overlap.problems == PROBLEMS - 11
    assert found.overlap.chains_only_a == 22
    assert found.other_answers == 1
    assert "the runs have different known answers: 1 problem" in shown(found)


def test_chains_that_the_policy_sampled_are_matched_with_their_text(tmp_path: Path) -> None:
    bare = [{key: row[key] for key in ("id", "problem", "answer")} for row in rows()[::2]]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    drawn = labelled(tmp_path / "a", "sampling.solutions=2", given=bare)
    again = (f"data.path={drawn / 'labels'}", "data.columns.answer=gold_answers", "policy.oracle.seed=2")
    found = compared(drawn, labelled(tmp_path / "b", *again))
    assert found.overlap.by_words == found.overlap.chains == found.a.chains > 0
    assert found.overlap.prefixes_only_a == found.overlap.prefixes_only_b == 0
    assert "by the words of their steps" in shown(found)


def test_an_unfinished_run_is_compared_as_far_as_it_is(label: Label, tmp_path: Path) -> None:
    failing = ("policy=lab", "policy.lab.fail_after=1000", "run.max_failures=1", "run.units_in_flight=1")
    with pytest.raises(EngineDied), patch.object(oracle, "_CHUNK", 64):
        labelled(tmp_path, *failing)
    found = compared(label("plain"), tmp_path / "run")
    assert 0 < found.b.owed < found.b.units
    assert found.overlap.chains == found.b.chains < found.a.chains
    assert f"b: {format_unfinished(found.b.owed, found.b.units)}" in shown(found)


def refused(a: Path, b: Path) -> str:
    with pytest.raises(UsageError) as caught:
        compared(a, b)
    return str(caught.value)


def test_runs_without_a_common_prefix_are_refused_with_the_cause(label: Label, tmp_path: Path) -> None:
    for name in ("others", "answers", "rejected"):
        (tmp_path / name).mkdir()
    others = labelled(tmp_path / "others", given=rows(first=1000))
    assert "no problem is in both; label the same rows in both" in refused(label("plain"), others)
    wrong = [{**row, "answer": "1000"} for row in rows()]
    answers = labelled(tmp_path / "answers", given=wrong)
    assert f"the known answers differ in {PROBLEMS} problems" in refused(label("plain"), answers)
    bare = labelled(tmp_path / "rejected", "sampling.solutions=1", "sampling.keep=mixed", given=[
        {"problem": "p", "answer": "1"}
    ])  # fmt: skip
    assert "holds no labels" in refused(bare, label("plain"))


def test_no_run_and_an_older_one_are_refused(label: Label, tmp_path: Path) -> None:
    assert "does not contain a run" in refused(label("plain"), tmp_path)
    claim(LocalStorage(tmp_path / "old"), {"schema": 2})
    assert "was written with schema 2" in refused(tmp_path / "old", label("plain"))


def report(a: Path, b: Path, *more: str) -> int:
    return main(["report", f"run_dir=[{a},{b}]", *more])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_writes_a_page_in_the_place_of_its_like(label: Label, here: Path, capsys: Printed) -> None:
    runs = label("plain"), label("other", *OTHER)
    (here / "compare.html").write_text(f'{GENERATOR} report">')
    assert report(*runs) == 0
    text = capsys.readouterr().out
    assert f"report    {(here / 'compare.html').as_uri()}" in text
    page = (here / "compare.html").read_text()
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in page
    assert "<script>alert" not in page
    assert "long " * 30 in page
    assert "long " * 60 not in page
    for part in ("Prefixes that moved most", "policy.oracle.seed", "Shift by position", "run_dir=[", "<svg"):
        assert part in page
    assert all(where.startswith(("data:", "#")) for where in re.findall(r'\b(?:src|href)="([^"]*)"', page))


def test_what_cannot_be_done_is_reported_in_a_line(label: Label, here: Path, capsys: Printed) -> None:
    run = label("plain")
    (here / "notes.html").write_text("mine")
    for more, said in (
        ("out=notes.html", "out=notes.html exists and is not a report"),
        (f"out={run}/compare.html", "which is read: choose another out"),
        ("out=none/compare.html", "does not exist; create it"),
        ("planned=plan.json", "planned=plan.json is the plan of one run"),
    ):
        assert report(run, run, more) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
    assert [path.name for path in here.iterdir()] == ["notes.html"]
    assert (here / "notes.html").read_text() == "mine"
