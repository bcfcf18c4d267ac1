"""`audit` proves a run of `search`: what a forger changes is found, wherever it is."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from pipeline.__main__ import main
from pipeline.analysis.audit.findings import Check
from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.core.errors import UsageError
from pipeline.core.records import Tally
from pipeline.core.table import TABLES
from pipeline.searches.log import prefix_id
from pipeline.storage.commits import EDITION, INPUT, UNIT, Commit, CommitState, commit_name, publish
from pipeline.storage.shards import read_shard, write_shard
from pipeline.storage.unit_files import UnitFiles
from pipeline.storage.units import unit_chains, units_of, write_chains
from tests.audit.forger import Change, Forger, Row, every, first, one_less, one_more
from tests.audit.runs import copied, findings
from tests.library import Library
from tests.searches.runs import search_in, sums

pytestmark = pytest.mark.slow

PROBLEMS = 12


@pytest.fixture(scope="module")
def made(library: Library, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: library.copy(name, tmp_path_factory.mktemp(name)) for name in ("beam", "majority", "unknown")}


@pytest.fixture
def run_dir(made: dict[str, Path], tmp_path: Path) -> Path:
    return copied(made["beam"], tmp_path)


def ended(row: Row) -> bool:
    return bool(row["ended"])


def going_on(row: Row) -> bool:
    return not row["ended"]


def other(row: Row) -> str:
    return "incorrect" if row["verdict"] == "correct" else "correct"


@pytest.mark.parametrize("name", ["beam", "majority", "unknown"])
def test_a_finished_search_is_sound(name: str, made: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert findings(made[name]) == []
    assert main(["audit", f"run_dir={made[name]}"]) == 0
    said = capsys.readouterr().out
    assert f"searches   {PROBLEMS} searches, each made again from its log" in said
    assert f"rows       {PROBLEMS} problems to search, or rejected\n" in said
    assert said.endswith("sound      all problems are searched and nothing is wrong\n")


@pytest.mark.parametrize(
    "overrides",
    [
        ["search=weighted", "search.accept=0.8"],
        ["search=beam", "search.lookahead=1", "scorer.lab.unreadable=0.3"],
        ["search=beam", "search.max_steps=2"],
        ["search=dvts", "search.accept=0.9", "search.reliability=0.5"],
        ["search=particle"],
        ["search=mcts", "search.rollout=true"],
        ["search=regenerate", "search.chains=2", "search.start=weakest"],
        ["search=best_of_n", "sampling.max_tokens=60"],
    ],
    ids=lambda overrides: " ".join(overrides),
)
def test_a_search_by_any_method_is_sound(overrides: list[str], tmp_path: Path) -> None:
    rows = sums(3)
    rows[0]["steps"] = ["Step 1: branch a.", "Step 2: branch b."]
    run_dir = search_in(tmp_path / "search", rows, "search.n=4", *overrides)
    report = audit(AuditConfig(run_dir=str(run_dir)))
    assert report.findings == []
    assert report.sound


SAMPLES: list[tuple[str, Change, str]] = [
    ("lost", one_less, ""),
    ("twice", one_more, "is there 2 times"),
    ("of another problem", first(row=99), "samples has rows of problem number 99, which is none of the unit's"),
    ("after another node", first(node_id="0" * 20), "follows no known step"),
    ("another draw", first(draw=lambda row: row["draw"] + 1), "has not the id that follows from its node, its draw"),
    ("another length", first(steps=7), "has not the id that follows from its node, its draw"),
    ("another number", first(number=lambda row: row["number"] + 1), "steps before it, but says"),
    ("moved ends", first(step_ends=lambda row: [row["step_ends"][-1] + 1]), "do not cut its text into steps"),
    ("a blank step", first(step_ends=[0, 9], token_ends=[1, 9]), "do not cut its text into steps"),
    ("moved token ends", first(token_ends=lambda row: [row["token_ends"][-1] - 1]), "do not cut its tokens into steps"),
    ("a missing end", first(step_ends=[]), "has 0 ends of steps in its text, but 1 in its tokens"),
    ("no ends", first(step_ends=[], token_ends=[]), "has a text without a step"),
    ("fewer tokens", first(n_tokens=1), "tokens, but only 1 were generated"),
    ("not ended", first(ended, ended=False, answer=None, verdict=None), ""),
    ("more steps", first(step_ends=lambda row: [4, row["step_ends"][-1]], token_ends=lambda row: [4, row["token_ends"][-1]]),
     "has 2 steps, but 1 were asked for"),
    ("ended", every(ended=True, verdict="correct"), "follows a chain that has ended"),
    ("an answer before the end", first(going_on, answer="7"), "although its chain has not ended"),
    ("an unknown verdict", first(ended, verdict="perhaps"), "has the verdict 'perhaps', which is none"),
    ("no verdict", first(ended, verdict=None), "has no verdict, although the right answer is known"),
    ("an unknown end", first(finish="bored"), "ended by 'bored', which is no way to end"),
    ("a negative time", first(seconds=-1.0), "has a negative time or number of tokens"),
    ("another text", every(text=lambda row: f"X{row['text'][1:]}"), "is of no known beginning of a chain"),
    ("another verdict", first(ended, verdict=other), "but its log leads to"),
    ("another answer", first(ended, answer="5"), "but its log leads to"),
    ("more tokens", first(n_tokens=lambda row: row["n_tokens"] + 1), "has policy_tokens"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("majority", first(ended=False, answer=None, verdict=None), "has fewer steps than were asked for"),
        ("unknown", first(verdict="correct"), "has a verdict, although the right answer is not known"),
    ],
)
def test_whole_chains_end_and_have_verdicts_only_where_the_answer_is_known(
    name: str, change: Change, fault: str, made: dict[str, Path], tmp_path: Path
) -> None:
    run_dir = copied(made[name], tmp_path)
    Forger(run_dir).change(UNIT, "samples", change)
    assert any(fault in each.fault for each in findings(run_dir))


def test_the_answer_that_a_problem_kills_engines_needs_its_id(run_dir: Path) -> None:
    Forger(run_dir).change(UNIT, "samples", first(draw=-1))
    assert any("kills engines, but has another id" in each.fault for each in findings(run_dir))


SCORES: list[tuple[str, Change, str]] = [
    ("lost", one_less, "lacks answers that the search asked for"),
    ("twice", one_more, "is there 2 times"),
    ("of another problem", first(row=99), "stepscores has rows of problem number 99"),
    ("of an unknown prefix", first(prefix_id="0" * 20), "is of no known beginning of a chain"),
    ("of another step", first(step=9), "says step 9, but the prefix has"),
    ("too high", first(score=1.5, raw_score=1.5), "that is not between 0 and 1"),
    ("too sure", first(reliability=-0.1), "that is not between 0 and 1"),
    ("half of it", first(raw_score=None), "has only one of score and raw score"),
    ("calibrated without a calibration", first(lambda row: row["score"] > 0, score=0.0), "there is no calibration"),
    ("a fault", first(fault="unreadable"), "has a reason for having none"),
    ("computed more than read", first(n_computed=10**6), "took 1000000 computed tokens of"),
    ("a negative time", first(took=-1.0), "has a negative time"),
    ("another score", every(score=0.5, raw_score=0.5), ""),
    ("more tokens", first(n_tokens=lambda row: row["n_tokens"] + 1), "has scorer_tokens"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "change", "fault"),
    [
        pytest.param(table, change, fault, id=f"{table} {name}")
        for table, changes in (("samples", SAMPLES), ("stepscores", SCORES))
        for name, change, fault in changes
    ],
)
def test_what_a_forger_changes_in_the_log_is_found(table: str, change: Change, fault: str, run_dir: Path) -> None:
    Forger(run_dir).change(UNIT, table, change)
    found = findings(run_dir)
    assert found
    assert any(fault in each.fault for each in found), found


def test_a_score_that_nobody_asked_for_is_found(made: dict[str, Path], tmp_path: Path) -> None:
    """The majority needs no scores."""
    run_dir = copied(made["majority"], tmp_path)
    sample = rows_of(run_dir, UNIT, "samples")[0]
    problem = next(row for row in rows_of(run_dir, INPUT, "chains") if row["row"] == sample["row"])
    score = {
        "row": sample["row"],
        "prefix_id": prefix_id(problem["problem_id"], [sample["text"][: sample["step_ends"][0]]]),
        "step": 1,
        "score": 0.5,
        "raw_score": 0.5,
        "n_tokens": 1,
        "n_computed": 1,
        "seconds": 0.0,
        "took": 0.0,
    }
    forger = Forger(run_dir)
    whole = forger.last(UNIT, "samples")
    table = pa.Table.from_pylist([score], schema=TABLES["stepscores"].schema)
    written = write_shard(forger.storage, "stepscores", whole.sequence_id, [table])
    forger.write(replace(whole, shards=(*whole.shards, written)))
    assert any("which this search did not ask for" in each.fault for each in findings(run_dir))


def rows_of(run_dir: Path, kind: str, table: str) -> list[Row]:
    """The rows of a table of the last record that names it."""
    forger = Forger(run_dir)
    shards = [shard for shard in forger.last(kind, table).shards if shard.table == table]
    return [row for shard in shards for row in read_shard(forger.storage, shard).to_pylist()]


CANDIDATES: list[tuple[str, Change, str]] = [
    ("lost", one_less, "rows of candidates, but its log leads to"),
    ("of another problem", first(row=99), "candidates has rows of problem number 99"),
    ("another choice", every(chosen=lambda row: not row["chosen"]), "has chosen"),
    ("another score", first(score=0.123), "has score 0.123, but its log leads to"),
    ("other steps", first(steps=["X"]), "has steps ['X']"),
    ("other nodes", first(node_ids=["0" * 20]), "has node_ids ["),
    ("several scorers", first(model="another"), "name several scorers"),
    ("cut", first(cut=lambda row: not row["cut"]), "has cut"),
]  # fmt: skip
RESULTS: list[tuple[str, Change, str]] = [
    ("lost", one_less, "has 0 rows of results, but its log leads to 1"),
    ("another outcome", first(outcome=lambda row: not row["outcome"]), "has outcome"),
    ("another answer", first(final_answer="5"), "has final_answer '5'"),
    ("surer", first(confidence=0.987), "has confidence 0.987"),
    ("trusted", first(trusted=lambda row: not row["trusted"]), "has trusted"),
    ("stopped otherwise", first(stopped=lambda row: "done" if row["stopped"] == "accepted" else "accepted"), "has stopped"),
    ("another weakest step", first(weakest_step=77), "has weakest_step 77"),
    ("fewer tokens", first(policy_tokens=1), "has policy_tokens 1"),
    ("longer", first(seconds=9e9), "has seconds 9"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "change", "fault"),
    [("candidates", *each[1:]) for each in CANDIDATES] + [("searches", *each[1:]) for each in RESULTS],
    ids=[f"candidates {each[0]}" for each in CANDIDATES] + [f"searches {each[0]}" for each in RESULTS],
)
def test_results_that_the_log_does_not_lead_to_are_found(table: str, change: Change, fault: str, run_dir: Path) -> None:
    Forger(run_dir).change(UNIT, table, change)
    found = findings(run_dir)
    assert any(fault in each.fault and each.check is Check.SEARCHES for each in found), found


def test_totals_that_follow_the_forged_table_do_not_hide_it(run_dir: Path) -> None:
    forger = Forger(run_dir)
    forger.change(UNIT, "searches", first(policy_tokens=lambda row: row["policy_tokens"] + 1))
    whole = forger.last(UNIT)
    forger.write(replace(whole, tally=whole.tally + Tally(tokens=1)))
    assert {each.check for each in findings(run_dir)} == {Check.SEARCHES}


@pytest.mark.parametrize("of_part", [0, 5])
def test_an_unfinished_search_owes_its_units_and_its_parts_have_totals(of_part: int, run_dir: Path) -> None:
    """`of_part`: tokens by which the record of a part is wrong."""
    forger = Forger(run_dir)
    whole = forger.last(UNIT, "samples")
    tables = {shard.table: read_shard(forger.storage, shard) for shard in whole.shards}
    (run_dir / commit_name(whole)).unlink()
    log = UnitFiles(forger.storage, whole.sequence_id)
    log.read()
    part = {name: tables[name] for name in ("samples", "stepscores")}
    tokens = sum(row["n_tokens"] for row in part["samples"].to_pylist())
    computed = sum(row["n_computed"] for row in part["stepscores"].to_pylist())
    assert log.append(part, Tally(tokens=tokens + of_part, scorer_tokens=computed))
    report = audit(AuditConfig(run_dir=str(run_dir)))
    assert (report.owed, report.sound) == (1, False)
    assert ["its totals are wrong" in each.fault for each in report.findings] == [True] * bool(of_part)


def test_other_problems_than_those_of_the_units_are_found(run_dir: Path) -> None:
    forger = Forger(run_dir)
    staged = forger.last(INPUT, "chains")
    units = {unit.unit_id: unit_chains(forger.storage, unit) for unit in units_of(forger.storage, staged)}
    name = next(iter(units))
    forged = write_chains(forger.storage, "0" * 20, {**units, name: first(chain_id="0" * 20)(units[name])})
    forger.write(replace(staged, shards=(forged,)))
    assert any("are those of another unit" in each.fault for each in findings(run_dir))


def test_a_file_of_problems_without_its_units_is_found(run_dir: Path) -> None:
    """The forger writes the file without its notes."""
    Forger(run_dir).change(INPUT, "chains", every())
    assert any("does not say which units its chains are" in each.fault for each in findings(run_dir))


def test_an_edition_is_no_record_of_a_search(run_dir: Path) -> None:
    forger = Forger(run_dir)
    assert publish(forger.storage, Commit(kind=EDITION, sequence_id="0" * 20, number=0, state=CommitState.WHOLE))
    assert [each.fault for each in findings(run_dir)] == ["is no record of `search`"]


def test_a_method_that_is_not_installed_is_found_and_the_rest_is_proved(run_dir: Path) -> None:
    Forger(run_dir).change(UNIT, "stepscores", first(step=9))
    with patch("pipeline.analysis.audit.searches.search_for", side_effect=UsageError("not here")):
        found = findings(run_dir)
    assert {each.check for each in found} == {Check.SETTINGS, Check.STEP_SCORES}
    assert any("names a method that cannot be used here (not here)" in each.fault for each in found)
