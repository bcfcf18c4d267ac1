"""Plug-ins of an installed distribution work on the command line like built-in implementations, in each kind of run.

`tests/plugin` is such a distribution: it offers the examples. `test_wheel` installs it, and runs it with Ray."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.__main__ import main
from tests.conftest import write_rows
from tests.guard.terminal import Answer
from tests.plugin.installed import distribution, example, installed
from tests.plugin.mistakes import AT_WORK, ELSEWHERE, UNUSABLE, LostEngine, Mistake, points
from tests.runtime.without_ray import without_ray

pytestmark = pytest.mark.slow

ROWS: list[dict[str, object]] = [
    {"id": f"r{number}", "problem": f"Is {number} even?", "answer": answer,
     "steps": ["Let me see.", f"{number} + 1 = {number + 1}.", f"{number} is odd.", said]}
    for number, (answer, said) in enumerate([("yes", "Yes"), ("no", "Yes"), ("yes", "No")])
]  # fmt: skip
SUMS: list[dict[str, object]] = [
    {"id": f"s{number}", "problem": f"{number}+1", "answer": str(number + 1),
     "steps": ["Let me see.", f"{number} + 1 = {said}", f"The answer is {said}."]}
    for number, said in enumerate([1, 2, 7])
]  # fmt: skip
LABEL = ["label", "policy=echo", "estimator=halves", "grader=yes_no", "data.path=rows.jsonl", "sampling.rollouts=6"]
SAMPLED = ["label", "policy=oracle", "estimator=fixed", "run.report=false", "sampling.rollouts=4"]
GROWN = ["policy.oracle.world=tree", "sampling.store_tokens=true", "sampling.solutions=2"]
GROW = ["grow", "grow.budget_unit=rollouts", "grow.rollouts=4", "grow.budget=40"]


def whose(group: str, name: str, where: str, distribution: str = "stepvalue-example 1.0") -> str:
    return f"{distribution} (stepvalue.{group}: {name} = {where})"


class Shell:
    """Commands in the working directory, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *words: str) -> Answer:
        self._capsys.readouterr()
        code = main(words)
        shown = self._capsys.readouterr()
        assert "Traceback" not in shown.err
        return Answer(code=code, out=shown.out, err=shown.err)

    def does(self, *words: str) -> Answer:
        done = self.run(*words)
        assert done.code == 0, (words, done.err, done.out)
        return done

    def refuses(self, *words: str) -> str:
        """The one line of a refusal."""
        done = self.run(*words)
        assert done.code == 2, done.err
        (line,) = done.err.splitlines()
        return line


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the distribution of the examples, and one of mistakes, installed in it, and nothing else."""
    folder = distribution(tmp_path_factory.mktemp("site"), "stepvalue-example", "1.0", example())
    (folder / "leaving.py").write_text("raise SystemExit(3)\n")
    return distribution(folder, "stepvalue-broken", "2.0", points())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.jsonl", ROWS)
    with without_ray():
        yield


@pytest.fixture
def shell(site: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    with installed(site):
        yield Shell(capsys)


def recorded(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "run.json").read_text())
    return found


def table(folder: str) -> pl.DataFrame:
    return pl.read_parquet(f"{folder}/*.parquet")


def test_a_run_is_labelled_audited_relabelled_reported_and_exported(shell: Shell, site: Path) -> None:
    shell.does(*LABEL, "estimator.share=0.3", "policy.prefix=So: ", "run_dir=run")
    labels = table("run/labels")
    assert labels["estimator"].unique().to_list() == ["halves"]
    assert labels["outcome"].sort().to_list() == [False, False, True], "capital letters do not count"
    assert table("run/rollouts")["text"].str.starts_with("So: ").all()
    own = recorded("run")
    assert own["estimator.plugin"] == whose("estimators", "halves", "pipeline.examples.estimator:Halves")
    assert (own["policy.prefix"], own["estimator.share"], own["grader.kind"]) == ("So: ", 0.3, "yes_no")
    shell.does("audit", "run_dir=run")
    shell.does("relabel", "run_dir=run", "estimator.threshold=0.9", "estimator.rule=threshold")
    shell.does("regrade", "run_dir=run", "grader.timeout_is=ungraded")
    shell.does("audit", "run_dir=run")
    shell.does("report", "run_dir=run")
    shell.does("export", "run_dir=run", "format=counted", "counted.most=1", "out=out", "uncertain=merge")
    written = [json.loads(line) for line in Path("out/train.jsonl").read_text().splitlines()]
    assert written
    assert all(set(row) == {"problem", "good"} and row["good"] <= 1 for row in written)
    assert "- `counted.most`: `1`\n" in Path("out/README.md").read_text()
    other_version(shell, site)


def other_version(shell: Shell, site: Path) -> None:
    """The run is not continued with another version of the plug-ins, or without them."""
    same = [*LABEL, "estimator.share=0.3", "policy.prefix=So: ", "run_dir=run"]
    others = (["relabel", "run_dir=run", "estimator.confidence=0.9"], ["audit", "run_dir=run"])
    newer = distribution(Path("newer"), "stepvalue-example", "1.1", example()).resolve()
    with installed(newer):
        refused = shell.run(*same)
        assert refused.code == 2
        assert 'estimator.plugin was "stepvalue-example 1.0 ' in refused.err
        assert 'now "stepvalue-example 1.1 ' in refused.err
        for words in others:
            line = shell.refuses(*words)
            assert "comes from stepvalue-example 1.0 (" in line
            assert "but stepvalue-example 1.1 (" in line
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.path", [path for path in __import__("sys").path if path != str(site)])
        with installed():
            assert "there is no such option" in shell.refuses(*same[:-1], "run_dir=new")
            for words in (same, *others):
                line = shell.refuses(*words)
                assert " comes from stepvalue-example 1.0 (stepvalue.e" in line
                assert "which is not installed here" in line


def test_a_plan_simulates_a_plug_in(shell: Shell) -> None:
    shell.does("plan", *LABEL[1:], "run_dir=planned", "plan.pilot=false", "plan.out=plan.json")
    assert json.loads(Path("plan.json").read_text())["cost"]["estimator"] == "halves"


def test_help_lists_plug_ins_with_their_settings(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with installed(distribution(tmp_path / "site", "stepvalue-example", "1.0", example())):
        shell = Shell(capsys)
        options = " ".join(shell.does("label", "-h").out.split())
        assert "Options: bisect, first_success, fixed, halves, pooled." in options
        settings = shell.does("label", "--cfg", "job", "estimator=halves", "policy=echo").out
        assert "share: 0.5" in settings
        assert "prefix: 'The answer is '" in settings
        assert "preference, parquet, counted)" in " ".join(shell.does("export", "-h").out.split())
        assert "counted:\n  most: 100\n" in shell.does("export", "--cfg", "job", "format=counted").out
        assert "  counted.most = 100\n      whole number, at least 1. Good steps beyond are not counted.\n" in (
            shell.does("export", "--help-all").out
        )
        assert "  estimator.share = 0.5 (halves only)\n" in shell.does("label", "--help-all").out


@pytest.mark.parametrize(
    ("words", "line"),
    {
        "label estimator=halve": "estimator=halve: there is no such option, did you mean halves?",
        "label estimator=halves estimator.chare=1": "did you mean estimator.share?",
        "label estimator=halves estimator.share=0": "estimator.share=0.0 is out of range: it must be above 0",
        "label estimator._target_=pipeline.examples.estimator.Halves": "there is no setting estimator._target_",
        "label grader=yes_no policy=hf policy.model=. sampling.stop_at_answer=true": (
            "grader=yes_no does not say when a text has stated its answer"
        ),
        "label grader=yes_no policy=hf policy.model=.": "does not contain config.json",
        "export format=counted out=y counted.mos=2": "there is no setting counted.mos: did you mean counted.most?",
        "export format=counted out=y counted.most=0": "counted.most=0 is out of range: it must be at least 1",
    }.items(),
)
def test_mistakes_are_reported_as_with_our_own(words: str, line: str, shell: Shell) -> None:
    command, *settings = words.split()
    data = ["data=sample", *(["policy=oracle"] if "policy=hf" not in settings else [])] if command == "label" else []
    assert line in shell.refuses(command, *data, *settings, "run_dir=run")


def test_settings_of_another_format_have_no_effect(shell: Shell) -> None:
    remark, _ = shell.run("export", "run_dir=x", "format=counted", "out=y", "preference.margin=0.5").err.splitlines()
    assert remark.endswith("has no effect: it is a setting of format=preference, not of format=counted")


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_cannot_be_used_is_named(name: str, shell: Shell) -> None:
    each = UNUSABLE[name]
    words = {"estimators": ["label", "data=sample", "policy=oracle", f"estimator={name}"]}
    line = shell.refuses(*words.get(each.group, ["export", "run_dir=x", f"format={name}", "out=y"]))
    noun = {"estimators": "estimator", "exports": "format"}[each.group]
    assert line.startswith(f"stepvalue: {noun} {name} of {broken(name, each.group)} cannot be used")
    assert each.said in line


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_cannot_be_loaded_is_named(name: str, shell: Shell) -> None:
    where, said = ELSEWHERE[name]
    line = shell.refuses("label", "data=sample", "policy=oracle", f"estimator={name}")
    assert said in line
    assert f"stepvalue-broken 2.0 (stepvalue.estimators: {name} = {where})" in line


def test_a_name_of_ours_is_not_taken(shell: Shell) -> None:
    points = {"stepvalue.estimators": {"pooled": "pipeline.examples.estimator:Halves"}}
    with installed(distribution(Path("site"), "stepvalue-other", "3.0", points).resolve()):
        line = shell.refuses("label", "data=sample", "policy=oracle", "estimator=pooled")
    assert "estimator pooled is built into stepvalue, but stepvalue-other 3.0 (stepvalue.estimators: pooled = " in line


def broken(name: str, group: str) -> str:
    return whose(group, name, f"tests.plugin.mistakes:MADE.{name}", "stepvalue-broken 2.0")


def sampled(folder: Path, rows: list[dict[str, object]], *more: str) -> Path:
    with without_ray():
        assert (
            main([*SAMPLED, *more, f"data.path={write_rows(folder / 'rows.jsonl', rows)}", f"run_dir={folder / 'run'}"])
            == 0
        )
    return folder / "run"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without plug-ins."""
    return sampled(tmp_path_factory.mktemp("labelled"), SUMS)


@pytest.fixture(scope="module")
def to_grow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that can grow."""
    return sampled(tmp_path_factory.mktemp("to-grow"), [{**row, "steps": None} for row in SUMS], *GROWN)


@pytest.mark.parametrize("name", AT_WORK)
def test_what_goes_wrong_at_work_ends_the_command_in_a_line_that_names_it(
    name: str, shell: Shell, labelled: Path, to_grow: Path
) -> None:
    each: Mistake = AT_WORK[name]
    shutil.copytree(to_grow if each.group == "pickers" else labelled, "other")
    common = ["data.path=rows.jsonl", "run_dir=run", "run.report=false"]
    noun, words = {
        "estimators": ("estimator", ["label", "policy=oracle", f"estimator={name}", *common]),
        "engines": ("policy", ["label", "grader=yes_no", f"policy={name}", "estimator=fixed", *common]),
        "graders": ("grader", ["label", "policy=oracle", f"grader={name}", "estimator=fixed", *common]),
        "exports": ("format", ["export", "run_dir=other", f"format={name}", "out=run", "uncertain=merge"]),
        "scorers": ("scorer", ["score", "data.path=rows.jsonl", f"scorer={name}", "out=run.jsonl"]),
        "judges": ("judge", ["judge", "run_dir=other", f"judge={name}", "judge.name=wrong", "judge.votes=2"]),
        "witnesses": (
            "witness",
            ["relabel", "run_dir=other", "estimator.rule=consensus", f"consensus.witnesses=[{name}]"],
        ),
        "searches": ("search", ["search", f"search={name}", "search.n=2", "policy=oracle", *common[:2]]),
        "pickers": ("picker", [*GROW, "run_dir=other", f"grow={name}"]),
        "verifiers": ("verifier", ["check", *common[:2], f"checks=[arithmetic,{name}]"]),
    }[each.group]
    done = shell.run(*words)
    assert done.code in (1, 2)
    last = done.err.splitlines()[-1]
    assert last.startswith(f"stepvalue: {noun} {name} of {broken(name, each.group)} failed in ")
    assert each.said in last
    assert not list(Path("run").glob("labels/*"))
    assert not Path("run", "train.jsonl").exists()
    assert not Path("run.jsonl").exists()


def test_what_failed_goes_on_with_the_same_command(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*LABEL, "policy=lost", "run_dir=run"]
    words.remove("policy=echo")
    assert shell.run(*words).code == 1
    monkeypatch.setattr(LostEngine, "lost", False)
    shell.does(*words)


def test_a_scorer_scores_into_a_file_and_a_folder(shell: Shell) -> None:
    common = ("score", "data.path=rows.jsonl", "scorer=brevity", "scorer.half=10")
    shell.does(*common, "out=scores.jsonl")
    row = json.loads(Path("scores.jsonl").read_text().splitlines()[0])
    assert row["step_scores"] == [0.5 ** (len(step) / 10) for step in row["steps"]]
    shell.does(*common, "out=scores")
    assert recorded("scores")["scorer.plugin"] == whose("scorers", "brevity", "pipeline.examples.scorer:Brevity")


def test_a_judge_criticises_a_run(shell: Shell, labelled: Path) -> None:
    shutil.copytree(labelled, "run")
    shell.does("judge", "run_dir=run", "judge=numerals", "judge.votes=2", "judge.name=good")
    assert table("run/judges/good/critiques")["first_error"].to_list() == [1] * 2 * len(SUMS)
    assert recorded("run/judges/good")["judge.plugin"] == whose(
        "judges", "numerals", "pipeline.examples.judge:Numerals"
    )


def test_a_search_solves_problems(shell: Shell) -> None:
    common = ("search", "search=greedy", "search.n=2", "policy=echo", "scorer=brevity", "grader=yes_no")
    shell.does(*common, "data.path=rows.jsonl", "run_dir=run")
    shell.does("report", "run_dir=run")
    found = table("run/searches")
    assert found["method"].to_list() == ["greedy"] * 3
    assert found["candidates"].to_list() == [1] * 3
    own = recorded("run")
    assert own["search.plugin"] == whose("searches", "greedy", "pipeline.examples.search:Greedy")
    assert own["scorer.plugin"] == whose("scorers", "brevity", "pipeline.examples.scorer:Brevity")


def test_a_picker_grows_a_run(shell: Shell, to_grow: Path) -> None:
    shutil.copytree(to_grow, "run")
    shell.does(*GROW, "run_dir=run", "grow=doubtful", "grow.least=0.2")
    shell.does("audit", "run_dir=run")
    promoted = table("run/promotions")
    assert 0 < promoted.height <= 10
    assert (promoted["gain"] >= 0.2).all()
    (growth,) = Path("run/commits").glob("growth-*")
    assert whose("pickers", "doubtful", "pipeline.examples.picker:Doubtful") in growth.read_text(), "with its version"


def test_a_witness_refutes_steps(shell: Shell, labelled: Path) -> None:
    shutil.copytree(labelled, "run")
    relabel = ["relabel", "run_dir=run", "estimator.rule=consensus", "consensus.witnesses=[sums]"]
    shell.does(*relabel)
    shell.does("audit", "run_dir=run")
    opinions = {row["source_id"]: row["opinions"] for row in table("run/labels").to_dicts()}
    assert opinions["s0"] == opinions["s1"] == []
    assert [(each["witness"], each["steps"]) for each in opinions["s2"]] == [("sums", [None, 0, None])]
    edition = max(Path("run/commits").glob("edition-*")).read_text()
    assert f"sums that are done again, by {whose('witnesses', 'sums', 'pipeline.examples.witness:Sums')}" in edition


def test_a_verifier_checks(shell: Shell) -> None:
    done = shell.does("check", "data.path=rows.jsonl", "run_dir=out", "checks=[arithmetic,evens]")
    assert "evens: checked 12 steps of 3 chains: " in done.out
    findings = table("out/checks/evens/findings").filter(pl.col("verdict") != "unknown")
    assert findings["verdict"].to_list() == ["refuted", "holds", "refuted"]
    assert findings["evidence"].to_list() == [f"{number} divided by 2 leaves {number % 2}" for number in range(3)]
    assert recorded("out/checks/evens")["verifier.plugin"] == whose(
        "verifiers", "evens", "pipeline.examples.verifier:Evens"
    )


@pytest.mark.parametrize(
    ("words", "line"),
    {
        "label data=sample policy=echo": "policy=echo: there is no such option",
        "score data.path=rows.jsonl scorer=brevity out=x.jsonl": "scorer=brevity",
        "judge run_dir=run judge=numerals judge.name=x": "judge=numerals",
        "search data.path=rows.jsonl policy=oracle search=greedy run_dir=x": "search=greedy",
        "grow run_dir=run grow=doubtful grow.budget=40": "grow=doubtful",
        "check data.path=rows.jsonl checks=[evens] run_dir=x": "there is no such verifier here",
        "relabel run_dir=run estimator.rule=consensus consensus.witnesses=[sums]": (
            "consensus.witnesses=sums: there is no such witness here"
        ),
    }.items(),
)
def test_what_is_not_installed_is_missed_by_name(
    words: str, line: str, labelled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(labelled, "run")
    assert line in Shell(capsys).refuses(*words.split())
