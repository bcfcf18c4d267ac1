"""One worker with the oracle: input file -> staged units -> labels, without Ray."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.config.label import LabelConfig
from pipeline.core.ids import content_id, rollout_id
from pipeline.core.records import Prefix, Problem, Request, Totals
from pipeline.data.rows import input_digest
from pipeline.engines.base import Surroundings
from pipeline.engines.oracle import OracleEngine, OraclePolicyConfig
from pipeline.graders.registry import checker_for
from pipeline.runtime.intake import stage
from pipeline.runtime.labelling import engine_for
from pipeline.runtime.problem_budget import unit_target_of
from pipeline.runtime.state import identity, state_of
from pipeline.runtime.worker import UnitTask
from pipeline.storage.commits import UNIT, Commit, record_sequences
from pipeline.storage.local import LocalStorage
from pipeline.storage.run_record import STAGED_INPUT
from pipeline.storage.storage import Storage
from pipeline.storage.units import units_of
from tests.conftest import write_rows
from tests.runtime.in_process import worker_with
from tests.settings import compose_label, deciding

pytestmark = pytest.mark.slow

RIGHT = {
    "id": "r",
    "problem": "3 * 5 + 2?",
    "answer": "17",
    "steps": ["3 * 5 = 15.", "15 + 2 = 17.", "The answer is 17."],
}
WRONG = {
    "id": "w",
    "problem": "3 * 5 + 2?",
    "answer": "17",
    "steps": ["3 * 5 = 15.", "15 + 2 = 18.", "The answer is 18."],
}


def staged(storage: Storage, config: LabelConfig) -> Commit:
    with checker_for(config.grader) as checker:
        staged_id = str(identity(config, input_digest(config.data.path))[STAGED_INPUT])
        return stage(storage, staged_id, config.data, config.run, checker)


def label_all(
    tmp_path: Path, rows: list[dict[str, Any]], *overrides: str
) -> tuple[Commit, Totals, dict[str, pl.DataFrame]]:
    """Stage and label `rows`; the tables by name, all units together."""
    tmp_path.mkdir(exist_ok=True)
    data = write_rows(tmp_path / "rows.jsonl", rows)
    run_dir = tmp_path / "run"
    config = compose_label([f"data.path={data}", f"run_dir={run_dir}", "policy=oracle", "estimator=fixed", *overrides])
    storage = LocalStorage(run_dir)
    commit = staged(storage, config)

    async def work() -> None:
        worker = worker_with(config, engine_for(config, Surroundings()), storage)
        await worker.start()
        receipts = await asyncio.gather(
            *(
                worker.finish_unit(UnitTask(unit=unit, unit_target=unit_target_of(*deciding(config))))
                for unit in units_of(storage, commit)
            )
        )
        await worker.stop()
        assert all(receipt.whole for receipt in receipts)

    asyncio.run(work())
    found = {each.sequence_id: each for each in record_sequences(storage, UNIT)}
    units = list(units_of(storage, commit))
    unit_targets = {unit.unit_id: unit_target_of(*deciding(config)) for unit in units}
    totals = (commit.tally + state_of(units, found, unit_targets).tally).totals
    return commit, totals, {table: tables(run_dir, table) for table in ("labels", "rollouts", "rejects", "solutions")}


def tables(run_dir: Path, table: str) -> pl.DataFrame:
    files = sorted((run_dir / table).glob("*.parquet"))
    return pl.concat([pl.read_parquet(file) for file in files]) if files else pl.DataFrame()


def chain(labels: pl.DataFrame, source_id: str) -> dict[str, Any]:
    return labels.row(by_predicate=pl.col("source_id") == source_id, named=True)


def test_values_are_the_oracles_own(tmp_path: Path) -> None:
    _, totals, found = label_all(tmp_path, [RIGHT, WRONG], "sampling.rollouts=50")
    oracle = OracleEngine(OraclePolicyConfig())
    problem = Problem(problem_id=content_id("problem", "3 * 5 + 2?", "17"), text="3 * 5 + 2?", golds=("17",))

    async def right_ones(prefix_id: str) -> int:
        prefix = Prefix(prefix_id=prefix_id, step_index=0, text="", prompt_ids=())
        requests = [
            Request(request_id=rollout_id(prefix_id, issue), issue_index=issue, problem=problem, prefix=prefix)
            for issue in range(50)
        ]
        completions = [completion async for batch in oracle.generate(requests) for completion in batch]
        return sum("answer is 17." in completion.text for completion in completions)

    row = chain(found["labels"], "w")
    texts = ["3 * 5 = 15.\n", "3 * 5 = 15.\n15 + 2 = 18.\n"]
    expected = [asyncio.run(right_ones(content_id("prefix", problem.problem_id, text))) for text in texts]
    assert row["problem_id"] == problem.problem_id
    assert row["n_correct"] == [*expected, 0]
    assert row["n_rollouts"] == [50, 50, 0]
    assert row["value"] == [expected[0] / 50, expected[1] / 50, 0.0]
    assert row["origin"] == ["measured", "measured", "terminal"]
    assert row["root_n_correct"] == asyncio.run(right_ones(content_id("prefix", problem.problem_id, "")))
    assert totals.rollouts == totals.correct + totals.incorrect + totals.no_answer + totals.ungraded == 200


def test_equal_prefixes_are_sampled_once_and_shared(tmp_path: Path) -> None:
    _, totals, found = label_all(tmp_path, [RIGHT, WRONG])
    right, wrong = chain(found["labels"], "r"), chain(found["labels"], "w")
    assert right["n_correct"][0] == wrong["n_correct"][0]
    assert right["root_value"] == wrong["root_value"]
    assert totals.prefixes == 4  # the bare problem, the shared first step, two second steps
    assert found["rollouts"].height == 4 * 8
    assert found["rollouts"]["rollout_id"].n_unique() == 4 * 8
    assert set(Counter(found["rollouts"]["prefix_id"]).values()) == {8}


def test_the_full_chain_is_its_own_outcome(tmp_path: Path) -> None:
    _, _, found = label_all(tmp_path, [RIGHT, WRONG])
    right, wrong = chain(found["labels"], "r"), chain(found["labels"], "w")
    assert (right["outcome"], right["final_answer"], right["value"][-1], right["label"][-1]) == (True, "17", 1.0, 1)
    assert (wrong["outcome"], wrong["final_answer"], wrong["value"][-1], wrong["label"][-1]) == (False, "18", 0.0, 0)


def test_a_chain_without_a_final_answer_is_measured_to_its_end(tmp_path: Path) -> None:
    _, _, found = label_all(tmp_path, [{**RIGHT, "steps": ["3 * 5 = 15.", "15 + 2 = 17."]}])
    row = chain(found["labels"], "r")
    assert row["outcome"] is None
    assert row["final_answer"] is None
    assert row["origin"] == ["measured", "measured"]
    assert row["n_rollouts"] == [8, 8]


def test_the_solution_comes_back_from_its_slices(tmp_path: Path) -> None:
    _, _, found = label_all(tmp_path, [RIGHT])
    row = chain(found["labels"], "r")
    starts = [0, *row["step_ends"][:-1]]
    assert "".join(row["solution"][a:b] for a, b in zip(starts, row["step_ends"], strict=True)) == row["solution"]
    assert row["steps"] == RIGHT["steps"]


def test_rows_read_are_used_or_rejected_with_place_and_reason(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        RIGHT,
        {**WRONG, "answer": ""},
        {**WRONG, "steps": ["a", " "]},
        RIGHT,
        {**WRONG, "id": "r"},
        {**RIGHT, "id": "other id"},
        {"id": "n", "question": "?"},
        {**WRONG, "answer": "\\frac{1}{"},
        WRONG,
    ]
    commit, totals, found = label_all(tmp_path, rows)
    rejects = {row["line"]: row for row in found["rejects"].iter_rows(named=True)}
    reasons = {line: row["reason"] for line, row in rejects.items()}
    assert reasons == {
        2: "missing_answer",
        3: "bad_steps",
        4: "duplicate",
        5: "id_conflict",
        6: "duplicate",
        7: "missing_problem",
        8: "unparseable_answer",
    }
    assert "rows.jsonl:1" in rejects[5]["detail"]
    assert "data.columns.problem" in rejects[7]["detail"]
    assert (totals.rows, totals.used, totals.rejected) == (9, 2, 7)
    assert totals.used == found["labels"].height
    assert commit.totals.rows == 9


def test_units_depend_on_the_input_only(tmp_path: Path) -> None:
    rows = [
        {**RIGHT, "id": f"{n}-{chain}", "problem": f"{n} * 5 + {chain % 2}?"} for chain in range(2) for n in range(7)
    ]
    coarse = label_all(tmp_path / "a", rows)[2]["labels"]
    fine = label_all(tmp_path / "b", rows, "run.unit_problems=2")[2]["labels"]
    assert coarse.sort("chain_id").equals(fine.sort("chain_id"))


def test_chains_of_a_problem_stay_together_wherever_they_stand(tmp_path: Path) -> None:
    others = [{**RIGHT, "id": str(n), "problem": f"{n} + 1?"} for n in range(5)]
    _, totals, _ = label_all(tmp_path, [RIGHT, *others, WRONG], "run.unit_problems=1")
    assert totals.problems == 6
    assert totals.prefixes == 4 + 5 * 3


def test_problems_alone_get_their_chains_from_the_policy(tmp_path: Path) -> None:
    _, totals, found = label_all(tmp_path, [{"id": "p", "problem": "2 + 2?", "answer": 4}], "sampling.solutions=6")
    assert found["solutions"].height == 6
    for row in found["solutions"].iter_rows(named=True):
        text = row["text"].encode()
        assert bytes(row["token_ids"]) == text
        assert row["token_ends"] == [len(row["text"][:end].encode()) for end in row["step_ends"]]
    texts = set(found["solutions"]["text"])
    assert totals.chains == found["labels"].height == len(texts)
    assert {row["outcome"] for row in found["labels"].iter_rows(named=True)} <= {True, False}
    assert totals.solution_tokens > 0


def test_keep_mixed_drops_problems_that_are_always_right_or_always_wrong(tmp_path: Path) -> None:
    rows = [{"id": str(n), "problem": f"{n} + 2?", "answer": n + 2} for n in range(40)]
    _, totals, found = label_all(tmp_path, rows, "sampling.keep=mixed", "sampling.solutions=3")
    verdicts = (
        found["solutions"].group_by("problem_id").agg(pl.col("verdict").cast(pl.String).n_unique().alias("kinds"))
    )
    mixed = verdicts.filter(pl.col("kinds") == 2).height
    assert 0 < mixed < 40
    assert totals.used == mixed
    assert found["labels"]["problem_id"].n_unique() == mixed
    assert set(found["rejects"]["reason"]) == {"filtered"}
    assert totals.rows == 40 == totals.used + totals.rejected


def test_prefixes_too_long_for_the_context_are_named_and_never_sent(tmp_path: Path) -> None:
    long = {**RIGHT, "steps": ["3 * 5 = 15.", "x" * 300, "The answer is 17."]}
    huge = {**WRONG, "id": "huge", "problem": "y" * 500}
    settings = ("policy.max_model_len=300", "sampling.max_tokens=100")
    _, totals, found = label_all(tmp_path, [long, huge], *settings)
    row = chain(found["labels"], "r")
    assert row["n_rollouts"] == [8, 0, 0]
    assert row["value"] == [row["n_correct"][0] / 8, None, 1.0]
    assert row["origin"] == ["measured", "unmeasured", "terminal"]
    assert row["label"][1] is None
    rejects = {reject["source_id"]: reject for reject in found["rejects"].iter_rows(named=True)}
    assert rejects["r"]["step_index"] == 2
    assert rejects["huge"]["step_index"] is None
    assert "policy.max_model_len" in rejects["huge"]["detail"]
    assert (totals.used, totals.rejected, totals.too_long) == (1, 1, 1)


def test_several_gold_answers_any_counts(tmp_path: Path) -> None:
    _, _, found = label_all(tmp_path, [{**WRONG, "answer": ["17", "18"]}])
    assert chain(found["labels"], "w")["outcome"] is True
    assert chain(found["labels"], "w")["gold_answers"] == ["17", "18"]


def test_hostile_text_is_stored_as_it_is(tmp_path: Path) -> None:
    steps = ["<script>alert(1)</script>", "[bold]x[/bold] \u202e \x1b[31m", "The answer is 17."]
    _, _, found = label_all(tmp_path, [{**RIGHT, "steps": steps}])
    assert chain(found["labels"], "r")["steps"] == steps
