"""Plug-ins of an installed distribution work on the command line like built-in implementations; `tests/plugin` is one."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import ROOT
from tests.guard.terminal import Answer, in_turn

pytestmark = pytest.mark.slow

TOOLS = Path(sys.executable).parent
COMMON = ("policy=coin", "policy.coin.heads=0.4", "estimator=thompson", "estimator.prior_weight=1.5", "grader=caseless")
ROWS = [
    {"id": f"r{number}", "problem": f"What is the capital, number {number}?", "answer": answer,
     "steps": ["Let me think.", "It is a large city.", f"The answer is {said}."]}
    for number, (answer, said) in enumerate([("Paris", "PARIS"), ("Oslo", "Rome"), ("Lima", "lima")])
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the distribution installed in it, and nothing else."""
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(ROOT / "tests" / "plugin", source)
    return installed(source, tmp_path_factory.mktemp("site"))


def installed(source: Path, site: Path) -> Path:
    """Install a distribution into a folder of its own, without any download."""
    words = [str(TOOLS / "uv"), "pip", "install", "--no-deps", "--offline", "--no-build-isolation", "--quiet"]
    words += ["--python", sys.executable, "--target", str(site), str(source)]
    subprocess.run(words, check=True, timeout=120)
    return site


def offered(site: Path, group: str, entry_point: str) -> None:
    """Have a distribution in a folder that offers something under an entry point."""
    broken = site / "stepvalue_broken-2.0.dist-info"
    broken.mkdir(parents=True)
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: stepvalue-broken\nVersion: 2.0\n")
    (broken / "entry_points.txt").write_text(f"[stepvalue.{group}]\n{entry_point}\n")


def surroundings(site: Path | None) -> dict[str, str]:
    path = [str(site)] if site else []
    return {"PYTHONPATH": os.pathsep.join([*path, str(ROOT)]), "COLUMNS": "200"}


def stepvalue(folder: Path, site: Path | None, *words: str) -> Answer:
    """A command as its users start it."""
    command = [sys.executable, "-m", "pipeline", *words]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **surroundings(site)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return Answer(code=done.returncode, out=done.stdout, err=done.stderr)


def several(folder: Path, site: Path | None, *commands: Sequence[str]) -> list[Answer]:
    """Commands one after the other, in one process and without Ray."""
    return in_turn(folder, commands, surroundings(site))


def said(done: Answer) -> str:
    """The one line of a refusal."""
    assert done.code == 2, done.err
    assert "Traceback" not in done.err
    (line,) = done.err.splitlines()
    return line


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Path:
    """A folder with a run of the coin, sampled by Thompson's rule."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    done = stepvalue(folder, site, "label", *COMMON, "data.path=rows.jsonl", "run_dir=run", "sampling.rollouts=6")
    assert done.code == 0, done.err
    return folder


@pytest.mark.ray
def test_a_run_of_plug_ins_is_labelled_audited_relabelled_reported_and_exported(run: Path, site: Path) -> None:
    labels = pl.read_parquet(run / "run" / "labels" / "*.parquet")
    assert labels["estimator"].unique().to_list() == ["thompson"]
    assert labels["outcome"].sort().to_list() == [False, True, True], "capital letters do not count"
    recorded = json.loads((run / "run" / "run.json").read_text())
    assert recorded["estimator.plugin"] == (
        "stepvalue-example 1.0 (stepvalue.estimators: thompson = stepvalue_example.thompson:Thompson)"
    )
    assert {recorded["policy.coin.heads"], recorded["estimator.prior_weight"], recorded["grader.drop"]} == {
        0.4,
        1.5,
        ".",
    }
    rollouts = pl.read_parquet(run / "run" / "rollouts" / "*.parquet")
    assert len(rollouts) == 6 * 3 * len(ROWS), "as many as asked for, of three open prefixes each"
    commands = (
        ["audit", "run_dir=run"],
        ["relabel", "run_dir=run", "estimator.prior_weight=8", "estimator.rule=threshold"],
        ["regrade", "run_dir=run", "grader.drop=!"],
        ["audit", "run_dir=run"],
        ["report", "run_dir=run"],
        ["export", "run_dir=run", "format=lines", "lines.indent=2", "out=lines", "uncertain=merge"],
    )
    for words, done in zip(commands, several(run, site, *commands), strict=True):
        assert done.code == 0, (words, done.err)
    written = [json.loads(line) for line in (run / "lines" / "train.jsonl").read_text().splitlines()]
    assert [set(row) for row in written] == [{"text", "good"}] * len(written)
    assert all(line.startswith("  ") for row in written for line in row["text"].splitlines()[1:])
    assert "- `lines.indent`: `2`\n" in (run / "lines" / "README.md").read_text()


@pytest.mark.ray
def test_a_plan_simulates_a_plug_in(run: Path, site: Path) -> None:
    words = ["data.path=rows.jsonl", "run_dir=planned", "plan.pilot=false", "plan.out=plan.json", "sampling.rollouts=6"]
    done = stepvalue(run, site, "plan", *COMMON, *words)
    assert done.code == 0, done.err
    assert json.loads((run / "plan.json").read_text())["cost"]["estimator"] == "thompson"


def test_help_lists_plug_ins_with_their_settings(site: Path, tmp_path: Path) -> None:
    options, settings, formats, lines, all_lines, all_estimators = (
        answer.out
        for answer in several(
            tmp_path,
            site,
            ["label", "-h"],
            ["label", "--cfg", "job", "estimator=thompson", "policy=coin"],
            ["export", "-h"],
            ["export", "--cfg", "job", "format=lines"],
            ["export", "--help-all"],
            ["label", "--help-all"],
        )
    )
    assert "Options: bisect, first_success, fixed, pooled, thompson." in " ".join(options.split())
    assert "prior_weight: 2.0" in settings
    assert "heads: 0.5" in settings
    assert "preference, parquet, lines)" in " ".join(formats.split())
    assert "lines:\n  indent: 0\n" in lines
    assert "  lines.indent = 0\n      whole number, 0 or more. Blanks in front of each step.\n" in all_lines
    assert "  estimator.prior_weight = 2.0 (thompson only)\n" in all_estimators


def test_settings_of_a_format_are_checked(site: Path, tmp_path: Path) -> None:
    lines = {
        "lines.inden=2": "there is no setting lines.inden: did you mean lines.indent?",
        "lines.indent=-1": "lines.indent=-1 is out of range: it must be 0 or more",
    }
    asked = ("export", "run_dir=x", "format=lines", "out=y")
    for line, answer in zip(lines.values(), several(tmp_path, site, *([*asked, word] for word in lines)), strict=True):
        assert line in said(answer)


MISTAKES = {
    "estimator=tompson": "estimator=tompson: there is no such option, did you mean thompson?",
    "estimator=thompson estimator.prior_wait=3": "did you mean estimator.prior_weight?",
    "estimator=thompson estimator.prior_weight=0": "estimator.prior_weight=0.0 is out of range: it must be above 0",
    "estimator._target_=stepvalue_example.thompson.Thompson": "there is no setting estimator._target_",
}


def test_mistakes_are_reported_as_with_our_own(site: Path, tmp_path: Path) -> None:
    commands = [["label", "data=sample", "policy=oracle", *words.split()] for words in MISTAKES]
    for line, answer in zip(MISTAKES.values(), several(tmp_path, site, *commands), strict=True):
        assert line in said(answer)


def test_settings_of_another_format_have_no_effect(site: Path, tmp_path: Path) -> None:
    words = ["run_dir=x", "format=lines", "out=y", "preference.margin=0.5"]
    remark, _ = stepvalue(tmp_path, site, "export", *words).err.splitlines()
    assert remark.endswith("has no effect: it is a setting of format=preference, not of format=lines")


@pytest.mark.parametrize("section", ["", "decontaminate", "out"])
def test_a_section_of_settings_needs_a_name_of_its_own(section: str, site: Path, tmp_path: Path) -> None:
    shutil.copytree(site, tmp_path / "site")
    offered(tmp_path / "site", "exports", "torn = torn:Torn")
    (tmp_path / "site" / "torn.py").write_text(
        "from dataclasses import dataclass\n"
        "from stepvalue_example.lines import Lines, LinesConfig\n"
        "class TornConfig(LinesConfig):\n"
        f"    SECTION = {section!r}\n"
        "class Torn(Lines):\n"
        "    Config = TornConfig\n"
    )
    line = said(stepvalue(tmp_path, tmp_path / "site", "export", "run_dir=x", "format=torn", "out=y"))
    assert line.startswith(
        "stepvalue: format torn of stepvalue-broken 2.0 (stepvalue.exports: torn = torn:Torn) cannot be used"
    )
    assert f"SECTION={section!r}" in line


def test_a_grader_need_not_say_where_answers_end(site: Path, tmp_path: Path) -> None:
    words = ["label", "data=sample", "grader=caseless", "run_dir=run", "policy=hf", f"policy.model={tmp_path}"]
    stops, goes_on = several(tmp_path, site, [*words, "sampling.stop_at_answer=true"], words)
    assert "grader=caseless does not say when a text has stated its answer" in said(stops)
    (line,) = goes_on.err.splitlines()
    assert "does not contain config.json" in line, "it came as far as the model"


def test_what_a_plug_in_raises_ends_the_run_in_a_line_and_loses_nothing(site: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    words = ["label", "policy=coin", "grader=caseless", "estimator=fixed", "data.path=rows.jsonl", "run_dir=run"]
    broken, again = several(tmp_path, site, [*words, "policy.coin.fail_after=1"], words)
    assert broken.code == 1
    assert "Traceback" not in broken.err
    assert broken.err.splitlines()[-1] == (
        "stepvalue: policy coin of stepvalue-example 1.0 (stepvalue.engines: coin = stepvalue_example.coin:Coin) failed in "
        "generate: ZeroDivisionError: the coin is lost"
    )
    assert again.code == 0, "the same command goes on"


TORN = """
import sys
from dataclasses import dataclass, replace
from typing import Annotated
from pipeline.config.fields import RELABEL
from pipeline.estimators.base import Estimator
from stepvalue_example.thompson import Thompson, ThompsonConfig
@dataclass(kw_only=True, slots=True)
class TornConfig(ThompsonConfig):
    name: Annotated[str, RELABEL] = "NAME"
class Torn(Thompson):
    Config = TornConfig
"""
"""An estimator like Thompson's, without the line that tears it."""


def whose(name: str) -> str:
    return f"stepvalue: estimator {name} of stepvalue-broken 2.0 (stepvalue.estimators: {name} = {name}:Torn)"


def torn(site: Path, folder: Path, lines: Sequence[str], *more: Sequence[str]) -> dict[str, Answer]:
    """`label` with estimators of which a method is another one, `torn0` for the first line, and then more commands."""
    shutil.copytree(site, folder / "site")
    names = [f"torn{number}" for number in range(len(lines))]
    offered(folder / "site", "estimators", "\n".join(f"{name} = {name}:Torn" for name in names))
    for name, line in zip(names, lines, strict=True):
        (folder / "site" / f"{name}.py").write_text(f"{TORN.replace('NAME', name)}{line}\n")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    common = ["label", "policy=oracle", "data.path=rows.jsonl", "sampling.rollouts=3"]
    commands = [[*common, f"estimator={name}", f"run_dir=run-{name}"] for name in names]
    answers = several(folder, folder / "site", *commands, *more)
    return dict(zip([*names, *(words[0] for words in more)], answers, strict=True))


CANNOT_BE = {
    "    def __init__(self, settings): raise OSError('no')": "__init__: OSError: no",
    "    def next_rollouts(self, *given): sys.exit(3)": "next_rollouts: SystemExit: 3",
    "    def next_rollouts(self, *given): return super().next_rollouts(*given)[1:]": (
        "next_rollouts: it must return a list of 3 dicts, one per problem, but returned ["
    ),
    "    def values(self, *given): return [each[1:] for each in super().values(*given)]": (
        "values: it must return 4 values for a chain of 3 steps, but returned [StepValue("
    ),
    "    def values(self, *given):\n"
    "        return [[replace(one, value=float('nan')) for one in each] for each in super().values(*given)]": (
        "values: value must be a probability or None, but is nan"
    ),
}
"""Line that tears an estimator -> what it is said to have failed in."""


def test_what_cannot_be_is_reported_and_not_stored(site: Path, tmp_path: Path) -> None:
    answers = torn(site, tmp_path, list(CANNOT_BE))
    for (name, broken), printed in zip(answers.items(), CANNOT_BE.values(), strict=True):
        assert broken.code in (1, 2)
        assert "Traceback" not in broken.err
        assert broken.err.splitlines()[-1].startswith(f"{whose(name)} failed in {printed}")
        assert not list((tmp_path / f"run-{name}").glob("labels/*"))


LACKS = {
    "sys.exit(3)": "cannot be imported: SystemExit: 3",
    "class Torn(Estimator):\n    Config = TornConfig": "cannot be used: it has no next_rollouts and no values",
    "@dataclass(kw_only=True, slots=True)\nclass Odd(TornConfig):\n    odd: set[int] = None\nTorn.Config = Odd": (
        "cannot be used because of its settings: odd: Unexpected type annotation: set[int]"
    ),
    "Torn.Config = dict": "cannot be used: its Config is not a dataclass derived from one of `pipeline.config`",
}


@pytest.mark.ray
def test_what_lacks_is_named_and_in_nobodys_way(site: Path, tmp_path: Path, run: Path) -> None:
    shutil.copytree(run / "run", tmp_path / "other")
    answers = torn(site, tmp_path, list(LACKS), ["relabel", "run_dir=other", "estimator.confidence=0.9"])
    done = answers.pop("relabel")
    assert done.code == 0, done.err
    for (name, lacking), printed in zip(answers.items(), LACKS.values(), strict=True):
        assert said(lacking) == f"{whose(name)} {printed}"


@pytest.mark.ray
def test_a_format_that_raises_ends_the_export_in_a_line(run: Path, site: Path, tmp_path: Path) -> None:
    shutil.copytree(site, tmp_path / "site")
    offered(tmp_path / "site", "exports", "torn = torn:TORN")
    (tmp_path / "site" / "torn.py").write_text(
        "import dataclasses\nfrom stepvalue_example.lines import LINES\n"
        "TORN = dataclasses.replace(LINES.layout, row=lambda example, marks: {}['text'])\n"
    )
    broken = stepvalue(run, tmp_path / "site", "export", "run_dir=run", "format=torn", "out=torn", "uncertain=merge")
    assert broken.code == 1
    assert broken.err.splitlines()[-1] == (
        "stepvalue: format torn of stepvalue-broken 2.0 (stepvalue.exports: torn = torn:TORN) failed in making rows: "
        "KeyError: 'text'"
    )
    assert "Traceback" not in broken.err
    assert not (run / "torn").exists()


@pytest.mark.ray
def test_a_run_is_not_resumed_with_another_version_or_without_the_plug_in(
    run: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    words = ["label", *COMMON, "data.path=rows.jsonl", "run_dir=run", "sampling.rollouts=6"]
    source = tmp_path_factory.mktemp("newer") / "plugin"
    shutil.copytree(ROOT / "tests" / "plugin", source)
    project = source / "pyproject.toml"
    project.write_text(project.read_text().replace('version = "1.0"', 'version = "1.1"'))
    site = installed(source, tmp_path_factory.mktemp("newer-site"))
    commands = (words, ["relabel", "run_dir=run", "estimator.confidence=0.9"], ["audit", "run_dir=run"])
    newer, *others = several(run, site, *commands)
    assert newer.code == 2
    assert "Traceback" not in newer.err
    assert 'estimator.plugin was "stepvalue-example 1.0 ' in newer.err
    assert 'now "stepvalue-example 1.1 ' in newer.err
    new, *gone = several(run, None, [*words[:-2], "run_dir=new"], *commands)
    assert "there is no such option" in said(new)
    for refused in gone:
        assert " comes from stepvalue-example 1.0 (stepvalue.e" in said(refused)
        assert "which is not installed here" in said(refused)
    for refused in others:
        assert "comes from stepvalue-example 1.0 (" in said(refused)
        assert "but stepvalue-example 1.1 (" in said(refused)


@pytest.mark.parametrize(
    ("name", "target", "line"),
    [
        ("thompson", "stepvalue_example.missing:Thompson", "cannot be imported: ModuleNotFoundError"),
        ("thompson", "stepvalue_example.thompson:RateLearner", "cannot be used: it has no Config and no next_rollouts"),
        ("pooled", "stepvalue_example.thompson:Thompson", "estimator pooled is built into stepvalue, but"),
    ],
)  # fmt: skip
def test_a_plug_in_that_cannot_be_used_is_named(name: str, target: str, line: str, site: Path, tmp_path: Path) -> None:
    offered(tmp_path / "site", "estimators", f"{name} = {target}")
    if name == "thompson":
        shutil.copytree(site / "stepvalue_example", tmp_path / "site" / "stepvalue_example")
    found = said(stepvalue(tmp_path, tmp_path / "site", "label", "data=sample", "policy=oracle", f"estimator={name}"))
    assert line in found
    assert "stepvalue-broken 2.0 (stepvalue.estimators: " in found


@pytest.mark.ray
def test_a_scorer_of_a_plug_in_scores_into_a_file_and_a_folder_and_its_mistakes_name_it(
    site: Path, tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    common = ("score", "data.path=rows.jsonl", "scorer=brevity", "scorer.half=10")
    into_file, wrong = several(
        tmp_path, site, [*common, "out=scores.jsonl"], [*common, "scorer.most=300", "out=wrong.jsonl"]
    )
    assert into_file.code == 0, into_file.err
    rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert rows[0]["step_scores"] == [0.5 ** (len(step) / 10) for step in rows[0]["steps"]]
    assert wrong.err.startswith(
        "stepvalue: scorer brevity of stepvalue-example 1.0 (stepvalue.scorers: brevity = stepvalue_example.brevity:Brevity) "
        "failed in score: chain "
    )
    assert not (tmp_path / "wrong.jsonl").exists()
    into_folder = stepvalue(tmp_path, site, *common, "out=scores")
    assert into_folder.code == 0, into_folder.err
    recorded = json.loads((tmp_path / "scores" / "run.json").read_text())
    assert recorded["scorer.plugin"].startswith("stepvalue-example 1.0 (stepvalue.scorers: brevity")
    (line,) = stepvalue(tmp_path, None, *common, "out=scores").err.splitlines()
    assert "scorer=brevity" in line


@pytest.mark.ray
def test_a_judge_of_a_plug_in_criticises_a_run_and_its_mistakes_name_it(site: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    label = ["label", "data.path=rows.jsonl", "policy=oracle", "sampling.rollouts=2", "run_dir=run"]
    common = ["judge", "run_dir=run", "judge=numerals", "judge.votes=2"]
    labelled, judged, wrong = several(
        tmp_path, site, label, [*common, "judge.name=good"], [*common, "judge.name=wrong", "judge.beyond=3"]
    )
    assert labelled.code == 0, labelled.err
    assert judged.code == 0, judged.err
    critiques = pl.read_parquet(tmp_path / "run" / "judges" / "good" / "critiques" / "*.parquet")
    assert critiques["first_error"].to_list() == [1] * 2 * len(ROWS)
    recorded = json.loads((tmp_path / "run" / "judges" / "good" / "run.json").read_text())
    assert recorded["judge.plugin"].startswith("stepvalue-example 1.0 (stepvalue.judges: numerals")
    assert (
        "judge numerals of stepvalue-example 1.0 (stepvalue.judges: numerals = stepvalue_example.numerals:Numerals)"
        in wrong.err
    )
    assert "it names step 4 of a chain of 3 steps" in wrong.err


@pytest.mark.ray
def test_a_search_of_a_plug_in_solves_problems_and_its_mistakes_name_it(site: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    common = ["search", "search=shortest", "search.n=5", "policy=oracle", "data.path=rows.jsonl"]
    torn = ("root", "after", "raises")
    good, report, *wrong = several(
        tmp_path,
        site,
        [*common, "run_dir=good"],
        ["report", "run_dir=good"],
        *([*common, f"run_dir={name}", f"search.torn={name}"] for name in torn),
    )
    for done in (good, report):
        assert done.code == 0, done.err
    candidates = pl.read_parquet(tmp_path / "good" / "candidates" / "*.parquet")
    shortest = candidates.group_by("row").agg(
        pl.col("policy_tokens").min(), pl.col("policy_tokens").filter("chosen").first().alias("taken")
    )
    assert candidates.height == 5 * len(ROWS)
    assert shortest["policy_tokens"].to_list() == shortest["taken"].to_list()
    recorded = json.loads((tmp_path / "good" / "run.json").read_text())
    whose = "stepvalue-example 1.0 (stepvalue.searches: shortest = stepvalue_example.shortest:Shortest)"
    assert recorded["search.plugin"] == whose
    assert not any(key.startswith("scorer") for key in recorded)
    said = (
        "it chose a chain that is not among its candidates",
        "it asks for a sample after the end of a chain",
        "ZeroDivisionError: integer division or modulo by zero",
    )
    for done, words in zip(wrong, said, strict=True):
        assert done.code == 1
        assert done.err.splitlines()[-1] == f"stepvalue: search shortest of {whose} failed in search: {words}"


@pytest.mark.ray
def test_a_picker_of_a_plug_in_grows_a_run_and_its_mistakes_name_it(site: Path, tmp_path: Path) -> None:
    bare = [{**row, "steps": None} for row in ROWS]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bare))
    label = ["label", "data.path=rows.jsonl", "run_dir=run", "policy=oracle", "policy.oracle.world=tree"]
    label += ["estimator=fixed", "sampling.store_tokens=true", "sampling.rollouts=4", "sampling.solutions=2"]
    common = ["grow", "run_dir=run", "grow=deepest", "grow.budget_unit=rollouts", "grow.rollouts=4"]
    torn = ("root", "twice", "less", "raises")
    labelled, *wrong, grown, audited = several(
        tmp_path,
        site,
        label,
        *([*common, "grow.budget=40", f"grow.torn={name}"] for name in torn),
        [*common, "grow.budget=40"],
        ["audit", "run_dir=run"],
    )
    assert labelled.code == 0, labelled.err
    whose = "stepvalue-example 1.0 (stepvalue.pickers: deepest = stepvalue_example.deepest:Deepest)"
    said = (
        "it picks node 0, which is no candidate",
        " twice",
        "it says that a pick has the gain -1.0",
        "ZeroDivisionError: ",
    )
    for done, words in zip(wrong, said, strict=True):
        assert done.code == 1, done.err
        last = done.err.splitlines()[-1]
        assert last.startswith(f"stepvalue: picker deepest of {whose} failed in picks: ")
        assert words in last
    assert grown.code == 0, grown.err
    assert audited.code == 0, audited.out
    promotions = pl.read_parquet(tmp_path / "run" / "promotions" / "*.parquet")
    assert promotions.height == 10
    (growth,) = (tmp_path / "run" / "commits").glob("growth-*")
    assert whose in growth.read_text(), "the version of the plug-in"


@pytest.mark.ray
def test_a_verifier_of_a_plug_in_is_asked_and_its_mistakes_name_it(site: Path, tmp_path: Path) -> None:
    script = """
from pipeline.core.errors import PluginError
from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.registry import VERIFIERS, verifier_for, verifier_named

def asked(step):
    return StepInContext(problem="", earlier=(), step=step)

for letters in (4, 5):
    found = verifier_named("letters").verify(asked(f"The word tree has {letters} letters."))
    print(found.verdict, found.covers, found.evidence)
try:
    verifier_for(VERIFIERS.settings("letters")(silent=True)).verify(asked("The word tree has 5 letters."))
except PluginError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, **surroundings(site)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "holds whole tree has 4 letters",
        "refuted whole tree has 4 letters",
        "verifier letters of stepvalue-example 1.0 (stepvalue.verifiers: letters = stepvalue_example.letters:Letters) failed "
        "in verify: it says refuted without any evidence",
    ]


def test_a_witness_of_a_plug_in_refutes_steps_and_is_missed_by_name(site: Path, tmp_path: Path) -> None:
    sums = [
        {
            "problem": f"{number}+1",
            "answer": str(number + 1),
            "steps": [f"{number} + 1 = {number + said}", "The answer is 1."],
        }
        for number, said in ((1, 1), (2, 5))
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sums))
    label = ("label", "data.path=rows.jsonl", "run_dir=run", "policy=oracle", "estimator=fixed", "run.report=false")
    assert stepvalue(tmp_path, None, *label).code == 0
    relabel = ["relabel", "run_dir=run", "estimator.rule=consensus", "consensus.witnesses=[sums]"]
    done, proved = several(tmp_path, site, relabel, ["audit", "run_dir=run"])
    assert done.code == proved.code == 0, done.err + proved.out
    opinions = {
        row["problem"]: row["opinions"] for row in pl.read_parquet(tmp_path / "run" / "labels" / "*.parquet").to_dicts()
    }
    assert opinions["1+1"] == []
    assert [(each["witness"], each["steps"]) for each in opinions["2+1"]] == [("sums", [0, None])]
    edition = max((tmp_path / "run" / "commits").glob("edition-*")).read_text()
    assert "sums that are done again, by stepvalue-example 1.0 (stepvalue.witnesses: sums" in edition
    (refused,) = several(tmp_path, None, [*relabel, "estimator.certainty=0.9"])
    assert "consensus.witnesses=sums: there is no such witness here" in said(refused)


@pytest.mark.ray
def test_a_plug_ins_verifier_checks_and_is_blamed_for_what_it_gets_wrong(site: Path, tmp_path: Path) -> None:
    steps = ["The word tree has 4 letters.", "The word tree has 5 letters.", "So it grows."]
    (tmp_path / "rows.jsonl").write_text(json.dumps({"problem": "?", "steps": steps}) + "\n")
    words = ("check", "data.path=rows.jsonl", "run_dir=out", "checks=[arithmetic,letters]")
    done = stepvalue(tmp_path, site, *words)
    assert done.code == 0, done.err
    assert "letters: checked 3 steps of 1 chain: " in done.out
    assert "1 refuted, 1 holds (1 as a whole), 1 unknown" in done.out
    (file,) = (tmp_path / "out" / "checks" / "letters" / "findings").iterdir()
    assert pl.read_parquet(file)["evidence"].to_list() == ["tree has 4 letters", "tree has 4 letters", ""]
    recorded = json.loads((tmp_path / "out" / "checks" / "letters" / "run.json").read_text())
    assert recorded["verifier.plugin"].startswith("stepvalue-example 1.0 (stepvalue.verifiers: letters = ")
    silent = (*words[:2], "run_dir=other", *words[3:], "verifier=letters", "verifier.silent=true")
    failed = stepvalue(tmp_path, site, *silent)
    assert failed.code == 1
    assert failed.err.splitlines()[-1].endswith("failed in verify: it says holds without any evidence")
    assert "verifier letters of stepvalue-example 1.0" in failed.err
    assert (tmp_path / "other" / "checks" / "arithmetic" / "findings").is_dir(), "what was checked is kept"
    assert "there is no such verifier here" in said(stepvalue(tmp_path, None, *words))
