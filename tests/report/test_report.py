"""The page and the short form of whole runs: sound, unfinished, rejected, hostile."""

import re
import shlex
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.analysis.audit.run import audit
from pipeline.analysis.relabel import regrade
from pipeline.analysis.report.aggregates import in_all
from pipeline.analysis.report.run_report import read_run
from pipeline.analysis.status import run_status
from pipeline.config.changes import AuditConfig, RegradeConfig
from pipeline.core.errors import InputError
from pipeline.core.forecast import encode_forecast
from pipeline.runtime.state import identity
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import recorded_identity
from pipeline.storage.starts import FAILED, new_start_id, read_starts, write_start
from tests.audit.runs import config, copied, labelled
from tests.conftest import write_rows
from tests.library import Library
from tests.report.forecasts import forecast
from tests.runtime.in_process import label_in_process
from tests.settings import GraderChange, compose_label

pytestmark = pytest.mark.slow

Printed = pytest.CaptureFixture[str]
HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(1)>&amp;‮"
LOADS = {"src", "srcset", "poster", "data", "action", "formaction", "background", "xlink:href"}


class Page(HTMLParser):
    """The content of a page: its elements, its texts outside of style and script, and its scripts."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._within = ""
        self.raw = path.read_text("utf-8")
        self.feed(self.raw)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._within = tag

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "script" and "type" not in self.tags[-1][1]:
            self.scripts.append(data)
        elif self._within not in ("style", "script"):
            self.texts.append(data.strip())

    @property
    def text(self) -> str:
        return " ".join(filter(None, self.texts))


@pytest.fixture(scope="module")
def finished(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("mixed", tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def page(finished: Path) -> Page:
    assert main(["report", f"run_dir={finished}"]) == 0
    return Page(finished / "report.html")


def short(capsys: Printed, *arguments: str) -> str:
    assert main(["report", *arguments]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out


def test_the_command_to_copy_makes_a_run_with_the_same_settings(finished: Path, page: Page) -> None:
    (copied,) = (text for text in page.texts if text.startswith("python -m pipeline label"))
    words = shlex.split(copied.replace("\\\n", ""))
    assert words[:6] == ["python", "-m", "pipeline", "label", "INPUT", "run_dir=OUT"]
    made = identity(compose_label(["data.path=x", *words[5:]]), "")
    stored = recorded_identity(LocalStorage(finished))
    assert {key for key in stored if made[key] != stored[key]} == {"input", "staged_input"}


def test_what_is_reported_is_what_the_tables_hold(finished: Path, page: Page, capsys: Printed) -> None:
    shown = short(capsys, f"run_dir={finished}", f"out={finished.parent / 'again.html'}")
    labels = pl.read_parquet(finished / "labels" / "*.parquet")
    rollouts = pl.read_parquet(finished / "rollouts" / "*.parquet")
    of_steps = labels.select("outcome", "label", "value", "origin").explode("label", "value", "origin")
    measured = of_steps.filter(pl.col("origin") != "terminal")
    steps, uncertain = measured.height, measured["label"].null_count()
    right = measured.filter("outcome")["value"].mean()
    correct = (rollouts["verdict"].cast(pl.String) == "correct").sum()
    assert isinstance(right, float)
    assert f"{rollouts.height:,} = {correct:,} correct" in shown
    assert f"steps     {steps:,} = " in shown
    assert f"{uncertain:,} uncertain" in shown
    assert f"mean value {right:.2f} in right chains" in shown
    assert f"{of_steps.height - steps:,} last steps of chains, with the outcome as value" in shown
    assert f"{labels.height:,} chains" in shown
    assert f"of {steps:,}; {uncertain:,} uncertain" in page.text
    assert f"Rollouts {rollouts.height:,} {correct:,} correct" in page.text
    assert shown.endswith(f"report    {(finished.parent / 'again.html').as_uri()}\n")
    assert "Unfinished" not in page.text


def test_the_page_asks_for_nothing(page: Page) -> None:
    for tag, attributes in page.tags:
        assert not LOADS & attributes.keys(), (tag, attributes)
        assert (attributes.get("href") or "#").startswith(("#", "data:")), attributes
        assert tag not in ("iframe", "object", "embed", "base")
    # The name of SVG's elements is an address that nobody looks up.
    assert "http://" not in page.raw.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page.raw
    assert "url(" not in page.raw
    assert "@import" not in page.raw


def test_no_script_but_its_own_may_run(page: Page) -> None:
    (script,) = page.scripts
    (policy,) = (attributes["content"] for tag, attributes in page.tags if tag == "meta" and "http-equiv" in attributes)
    assert policy
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]


def test_every_chart_has_a_title_a_reading_aid_and_its_numbers(page: Page) -> None:
    figures = [tag for tag, _ in page.tags if tag == "figure"]
    assert len(figures) >= 6
    for part in ("svg", "h3"):
        assert len([tag for tag, _ in page.tags if tag == part]) == len(figures), part
    assert page.texts.count("Numbers") == len(figures)
    assert page.raw.count('<p class="reading">') == len(figures)
    # Colours come from the theme: a placeholder that is left would be the same in the dark.
    assert "var(--right)" in page.raw
    assert not re.search(r"#a1000\d", page.raw)


def test_a_run_is_as_sound_as_before(finished: Path, page: Page) -> None:
    assert page.raw
    report = audit(AuditConfig(run_dir=str(finished)))
    assert report.sound
    assert not report.orphans.foreign


def test_an_unfinished_run_reports_of_what_is_there(finished: Path, tmp_path: Path, capsys: Printed) -> None:
    run_dir = copied(finished, tmp_path)
    first = min((run_dir / "commits").glob("unit-*.json"))
    for record in (run_dir / "commits").glob(f"{first.name[:25]}-*.json"):
        record.unlink()
    (start,) = read_starts(LocalStorage(run_dir)).starts
    later = replace(start, start_id=new_start_id(start.at), ended=FAILED, message=f"no worker is left:\n{HOSTILE}")
    write_start(LocalStorage(run_dir), replace(later, began_at=start.at))
    shown = short(capsys, f"run_dir={run_dir}")
    page = Page(run_dir / "report.html")
    assert "units     1 of 2 units is unfinished; the last start failed: no worker is left: </title>" in shown
    assert "1 of 2 units is unfinished" in page.text
    assert "The last start failed: no worker is left: </title>" in page.text
    assert "values" in shown
    found = read_run(LocalStorage(run_dir), None).found
    assert found.totals.rollouts == found.log["rollouts"].sum() < 45
    assert in_all(found.steps).steps < 23


def test_what_is_committed_of_a_unit_in_work_stands_beside_the_plan(
    finished: Path, tmp_path: Path, capsys: Printed
) -> None:
    """As in `status`. The test removes the last record of a unit that was flushed and then completed."""
    run_dir = copied(finished, tmp_path)
    max((run_dir / "commits").glob("unit-*-00001.json")).unlink()
    storage = LocalStorage(run_dir)
    plan = replace(forecast(rollouts=45, tokens=1400), identity=recorded_identity(storage))
    storage.replace("plan.json", encode_forecast(plan))
    found = run_status(storage, 0.0)
    assert found.unfinished["rollouts"] > 0
    shown = short(capsys, f"run_dir={run_dir}")
    more = f"{found.unfinished['rollouts']} rollouts with {found.unfinished['tokens']:,} tokens"
    assert f"unfinished units have {more} so far" in shown
    so_far = (found.tally + found.unfinished)["rollouts"]
    assert f"planned   {so_far} rollouts of 45" in shown
    tokens = (found.tally + found.unfinished)["tokens"] + found.tally["solution_tokens"]
    assert f"{tokens:,} tokens of 1,400" in shown
    assert f"{found.unfinished['rollouts']} more in unfinished units" in Page(run_dir / "report.html").text


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [{"problem": "", "answer": "7"}, {"id": HOSTILE, "problem": "a", "steps": []}],
            "No row of the input can be labelled",
        ),
        ([{"id": HOSTILE, "problem": "y" * 500, "answer": "6", "steps": ["It is 6."]}] * 2, "There is no chain"),
    ],
    ids=["none usable", "all too long"],
)
def test_a_run_of_rejects_alone_says_why(
    rows: list[dict[str, Any]], said: str, tmp_path: Path, capsys: Printed
) -> None:
    write_rows(tmp_path / "rows.jsonl", rows)
    if "No row" in said:
        with pytest.raises(InputError):
            label_in_process(config(tmp_path))
    else:
        label_in_process(config(tmp_path))
    shown = short(capsys, f"run_dir={tmp_path / 'run'}")
    page = Page(tmp_path / "run" / "report.html")
    assert "2 read = 0 used + 2 rejected" in shown
    assert said in page.text
    assert HOSTILE in page.texts
    assert "Rows 2 0 used + 2 rejected" in page.text
    assert "figure" not in {tag for tag, _ in page.tags}


def test_hostile_names_stay_text(tmp_path: Path, capsys: Printed) -> None:
    name = "<b>&'\"x, [y]={z}"
    folder = tmp_path / name
    folder.mkdir()
    run_dir = labelled(folder, "run.unit_problems=50").rename(folder / "<i>run")
    storage = LocalStorage(run_dir)
    plan = replace(forecast(rollouts=45, tokens=1400), identity=recorded_identity(storage))
    storage.replace("plan.json", encode_forecast(plan).replace(b"2026-11-22 08:00 UTC", b"<i>now"))
    shown = short(capsys, f"run_dir={run_dir}")
    page = Page(run_dir / "report.html")
    assert page.texts.count("<i>run") == 1
    assert "The plan of <i>now, and" in page.text
    assert {"b", "i"}.isdisjoint({tag for tag, _ in page.tags})
    assert "planned   45 rollouts of 45 planned (36 to 54, inside the range)" in shown
    assert "1,461 tokens of 1,400 planned (1,120 to 1,680, inside the range)" in shown
    assert "1.04" in page.texts


def test_the_plan_of_another_run_is_reported_of(finished: Path, tmp_path: Path, capsys: Printed) -> None:
    plan = replace(
        forecast(rollouts=45, tokens=1400), identity={**recorded_identity(LocalStorage(finished)), "input": "b"}
    )
    (tmp_path / "plan.json").write_bytes(encode_forecast(plan))
    shown = short(capsys, f"run_dir={finished}", f"planned={tmp_path / 'plan.json'}", f"out={tmp_path / 'page.html'}")
    assert "planned   the plan is for another run: input differs\n          45 rollouts of 45 planned" in shown
    assert "The plan is for another run: input differs." in Page(tmp_path / "page.html").text


def test_a_plan_that_is_none_is_left_out_or_refused(finished: Path, tmp_path: Path, capsys: Printed) -> None:
    run_dir = copied(finished, tmp_path)
    (run_dir / "plan.json").write_text("{}")
    assert "planned" not in short(capsys, f"run_dir={run_dir}")
    assert "plan.json is ignored: it does not contain" in Page(run_dir / "report.html").text
    for plan, said in ((run_dir / "plan.json", "is not a plan"), (tmp_path / "none", "cannot be read")):
        assert main(["report", f"run_dir={run_dir}", f"planned={plan}"]) == 2
        assert said in capsys.readouterr().err


def test_no_file_of_anothers_is_overwritten(finished: Path, tmp_path: Path, capsys: Printed) -> None:
    out = tmp_path / "notes.html"
    out.write_text("mine")
    assert main(["report", f"run_dir={finished}", f"out={out}"]) == 2
    assert "not a report" in capsys.readouterr().err
    assert out.read_text() == "mine"
    out.unlink()
    for _ in range(2):
        assert main(["report", f"run_dir={finished}", f"out={out}"]) == 0
    assert Page(out).text


def test_verdicts_given_later_are_those_that_are_reported(finished: Path, tmp_path: Path, capsys: Printed) -> None:
    run_dir = copied(finished, tmp_path)
    before = read_run(LocalStorage(run_dir), None).found.totals
    # Every completion of the oracle says that "the work is done" before it states its answer.
    regrade(RegradeConfig(run_dir=str(run_dir), grader=GraderChange(answer_pattern="work (is)")))
    shown = short(capsys, f"run_dir={run_dir}")
    found = read_run(LocalStorage(run_dir), None).found
    graded = found.totals
    assert (before.correct, graded.correct) == (32, 0)
    assert graded.rollouts == graded.correct + graded.incorrect + graded.no_answer + graded.ungraded + graded.aborted
    assert found.log["rollouts"].sum() == graded.rollouts == before.rollouts
    assert "= 0 correct + " in shown
    assert "edition 0, made by regrade" in Page(run_dir / "report.html").text
