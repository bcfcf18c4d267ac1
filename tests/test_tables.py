"""Tables match their schemas exactly, lose nothing, and open in the common Parquet readers."""

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.analysis.consensus import learned_from, learned_table
from pipeline.config.choices import Aggregation
from pipeline.config.search import SearchConfig
from pipeline.consensus.evidence import ChainEvidence
from pipeline.consensus.learning import learn
from pipeline.core import tables
from pipeline.core.ids import rollout_id
from pipeline.core.records import (
    Chain,
    ChainText,
    ChainValues,
    Counts,
    Critique,
    Finish,
    InputRow,
    Problem,
    Promotion,
    Reading,
    ReadingKind,
    Reject,
    RejectReason,
    Rollout,
    RowLocation,
    SampledSolution,
    Solution,
    StepOpinion,
    Verdict,
)
from pipeline.core.table import TABLES, Table, storable
from pipeline.core.tables import (
    INPUTS,
    LABELS_GROWN,
    PROMOTIONS,
    READINGS,
    REJECTS,
    ROLLOUTS,
    SAMPLES,
    SOLUTIONS,
    STEP_SCORES,
    TOKEN_IDS,
    NewReading,
    SampleAnswer,
    ScoreAnswer,
    critiques_table,
    readings_of,
    turns_of,
)
from pipeline.estimators.fixed import measured_value, terminal_value
from pipeline.estimators.labelling import valued_labels
from pipeline.estimators.pooled.kernel import PRIOR
from pipeline.estimators.pooled.learning import KernelLearner
from pipeline.runtime.checking.task import findings_table
from pipeline.runtime.scoring.task import scores_table
from pipeline.scorers.base import StepScores
from pipeline.searches.base import WHOLE, Found, Sample, Search, Steps, Task, sample, step_scores
from pipeline.searches.log import nodes_of, root_of
from pipeline.searches.problem import ProblemSearch
from pipeline.searches.results import tables_of
from pipeline.storage.local import LocalStorage
from pipeline.storage.shards import write_shard
from pipeline.verifiers.base import CheckedStep, Covers, Fault, Finding, StepVerdict
from tests import strategies as our
from tests.settings import estimator_settings

PROBLEM = Problem(problem_id="a" * 20, text="Сколько?\nHow many?", golds=("3", "three"))
CHAIN = Solution(
    chain_id="b" * 20, problem_id="a" * 20, source_id="r1", text="one\ntwo\n3", ends=(4, 8, 9), token_ids=(5, 6)
)
MEASURED = measured_value(Counts(correct=3, graded=7, ungraded=1, truncated=2, tokens=80), estimator_settings("fixed"))
UNMEASURED = measured_value(Counts(ungraded=4, tokens=11), estimator_settings("fixed"))


def labelled(chain: Solution = CHAIN, *, answer: str | None = "3", outcome: bool | None = True) -> Chain:
    return Chain(
        problem=PROBLEM,
        solution=chain,
        root_prefix_id="d" * 20,
        prefix_ids=("e" * 20, "f" * 20, "0" * 20),
        final_answer=answer,
        outcome=outcome,
        policy="oracle:seed=0,spread=0.35",
    )


def labels(chains: Sequence[Chain]) -> pa.Table:
    values = ChainValues(
        root=MEASURED, steps=(MEASURED, UNMEASURED, terminal_value(outcome=True, threshold=0.5)), labels=(1, None, 1)
    )
    return valued_labels(chains, [values] * len(chains), estimator_settings("fixed"))


OURS = sorted({each.name for each in vars(tables).values() if isinstance(each, Table)})
"""Without those of plug-ins, which other tests declare."""


@given(st.lists(our.rollouts(), max_size=8))
def test_the_log_is_sorted_and_complete(rollouts: list[Rollout]) -> None:
    table = ROLLOUTS.to_table(rollouts)
    assert table.schema.equals(TABLES["rollouts"].schema)
    table.validate(full=True)
    rows = [row | {"reached_prefix_id": row["reached_prefix_id"] or ""} for row in table.to_pylist()]
    assert [row["rollout_id"] for row in rows] == sorted(rollout.rollout_id for rollout in rollouts)
    for row, rollout in zip(rows, sorted(rollouts, key=lambda each: each.rollout_id), strict=True):
        texts = {"text": storable(rollout.text), "answer": storable(rollout.answer)}
        wanted = rollout._asdict() | texts | {"reached_prefix_id": rollout.reached_prefix_id or ""}
        assert row == {name: value for name, value in wanted.items() if name != TOKEN_IDS}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(our.rollouts(), min_size=1, max_size=8, unique_by=lambda rollout: rollout.rollout_id),
    st.randoms(use_true_random=False),
)
def test_equal_rollouts_in_any_order_give_equal_bytes(
    tmp_path_factory: pytest.TempPathFactory, rollouts: list[Rollout], random: Random
) -> None:
    shuffled = list(rollouts)
    random.shuffle(shuffled)
    folder = tmp_path_factory.mktemp("equal")
    left, right = (
        write_shard(LocalStorage(folder), "rollouts", "c" * 20, [ROLLOUTS.to_table(some)])
        for some in (rollouts, shuffled)
    )
    assert left == right


@given(our.any_text)
def test_storable_text_is_utf8_and_differs_at_lone_surrogates_only(text: str) -> None:
    stored = storable(text)
    stored.encode()
    assert len(stored) == len(text)
    for before, after in zip(text, stored, strict=True):
        assert after == ("?" if "\ud800" <= before <= "\udfff" else before)


def test_lone_surrogates_can_be_stored_wherever_a_model_or_a_file_may_put_them() -> None:
    lone = "a\ud800b"
    rejects = REJECTS.to_table(
        [
            Reject(location=RowLocation(file="f", line=1), reason=RejectReason.BAD_TEXT, detail=lone, source_id=lone),
            Reject(location=RowLocation(file="f", line=2), reason=RejectReason.CONTEXT, detail="long", step_index=3),
        ]
    )
    assert rejects.schema.equals(TABLES["rejects"].schema)
    assert rejects.to_pylist() == [
        {"file": "f", "line": 1, "source_id": "a?b", "step_index": None, "reason": "bad_text", "detail": "a?b"},
        {"file": "f", "line": 2, "source_id": None, "step_index": 3, "reason": "context", "detail": "long"},
    ]
    assert labels([labelled(answer=lone)])["final_answer"].to_pylist() == ["a?b"]


def test_labels_keep_what_is_unknown_apart_from_zero() -> None:
    table = labels([labelled(), labelled(answer=None, outcome=None)])
    assert table.schema.equals(TABLES["labels"].schema)
    table.validate(full=True)
    first, second = table.to_pylist()
    assert first["value"] == [3 / 7, None, 1.0]
    assert first["low"] == [MEASURED.low, None, 1.0]
    assert first["high"] == [MEASURED.high, None, 1.0]
    assert first["value_sd"] == [MEASURED.value_sd, None, 0.0]
    assert first["p_above"] == [MEASURED.p_above, None, 1.0]
    assert first["unbiased_value"] == [3 / 7, None, 1.0]
    assert first["unbiased_rollouts"] == [7, 0, 0]
    assert first["n_correct"] == [3, 0, 0]
    assert first["n_rollouts"] == [7, 0, 0]
    assert first["n_ungraded"] == [1, 4, 0]
    assert first["n_truncated"] == [2, 0, 0]
    assert first["label"] == [1, None, 1]
    assert first["origin"] == ["measured", "unmeasured", "terminal"]
    assert (first["root_value"], first["root_n_correct"], first["root_n_rollouts"]) == (3 / 7, 3, 7)
    assert first["rollout_tokens"] == 80 + 80 + 11
    assert (first["gold_answer"], first["gold_answers"]) == ("3", ["3", "three"])
    assert first["steps"] == ["one", "two", "3"]
    bounds = itertools.pairwise((0, *first["step_ends"]))
    assert "".join(first["solution"][start:end] for start, end in bounds) == CHAIN.text
    assert (second["final_answer"], second["outcome"]) == (None, None)
    assert (second["estimator"], second["label_rule"], second["policy"]) == (
        "fixed",
        "any",
        "oracle:seed=0,spread=0.35",
    )


def test_labels_say_which_chains_have_grown_where_all_chains_do() -> None:
    grown = labels([replace(labelled(), grown=mark) for mark in (False, True)])
    assert grown.schema.equals(LABELS_GROWN.schema)
    assert grown["grown"].to_pylist() == [False, True]
    assert labels([labelled()]).schema.equals(TABLES["labels"].schema)


PROMOTED = Promotion(
    chain_id="c" * 20,
    problem_id="p" * 20,
    growth=0,
    round=1,
    place=2,
    rollout_id="r" * 20,
    prefix_id="e" * 20,
    begin=3,
    text="so ф\n",
    token_ids=(5, 6),
    ends=(5,),
    token_ends=(2,),
    rollouts=8,
    gain=0.25,
    cost=80.0,
)


JUDGED = ChainText(chain_id="c" * 20, problem_id="p" * 20, problem="ф?", steps=("1", "2"), prefix_ids=("e", "f"))
READ = (
    Reading(kind=ReadingKind.ERROR, first_error=2, steps=(StepOpinion.GOOD, StepOpinion.BAD)),
    Reading(kind=ReadingKind.NO_ERROR, steps=(StepOpinion.OK, None)),
    Reading(kind=ReadingKind.ERROR, first_error=1),
    Reading(kind=ReadingKind.FAILED),
)
WRITTEN = (("so ф", "\\boxed{2}"), ("a\ud800b", "", "none"), ("",), ())


def critiques() -> pa.Table:
    votes = [
        Critique(turns=turns, finish=Finish.STOP, reading=reading, n_tokens=5, n_prompt_tokens=9)
        for turns, reading in zip(WRITTEN, READ, strict=True)
    ]
    return critiques_table([(7, JUDGED, votes)], judge="qwen", model="m")


def test_critiques_and_their_readings_come_back_as_they_went_in() -> None:
    table = critiques()
    assert table.schema.equals(TABLES["critiques"].schema)
    table.validate(full=True)
    assert readings_of(table) == list(READ)
    rows = table.to_pylist()
    assert [turns_of(row["text"], row["turn_ends"]) for row in rows] == [tuple(map(storable, each)) for each in WRITTEN]
    assert [row["vote"] for row in rows] == [0, 1, 2, 3]
    ids = [row["critique_id"] for row in rows]
    assert len(set(ids)) == len(READ)
    again = READINGS.to_table(list(map(NewReading, ids, READ)))
    assert again.schema.equals(TABLES["readings"].schema)
    assert readings_of(again) == list(READ)


def findings_of(chains: pa.Table) -> pa.Table:
    """A finding on the first step, and none on the second."""
    said = Finding(verdict=StepVerdict.REFUTED, evidence="ф: a\ud800b is wrong", covers=Covers.PART)
    return findings_table(chains, [[CheckedStep(finding=said), CheckedStep(fault=Fault.DEADLINE)]], verifier="own")


SEARCHED = ChainText(
    row=7,
    steps=(),
    prefix_ids=(),
    problem_id="p" * 20,
    problem="ф?",
    chain_id="c" * 20,
    gold_answer="3",
    golds=("3",),
    source_id="x",
)


class TwoSteps(Search):
    """Samples one step, then the rest of the chain, and asks for its scores."""

    def search(self, task: Task) -> Steps[Found]:
        (first,) = yield from sample(task.root, 0)
        *_, last = yield from sample(first, 4, WHOLE)
        yield from step_scores(first)
        yield from step_scores(last)
        return Found(candidates=(last,), chosen=last, confidence=0.25)


def log_of_search() -> tuple[list[SampleAnswer], list[ScoreAnswer]]:
    """Its answers: the first step, and two further ones of which the second is the answer; scores of the first and the last."""
    root = root_of(SEARCHED.problem_id)
    of_first = {"text": "one\n", "token_ids": (5, 6), "step_ends": (4,), "token_ends": (2,), "finish": Finish.STOP}
    of_rest = {
        "text": "2ф\n3",
        "token_ids": (7, 8, 9),
        "step_ends": (3, 4),
        "token_ends": (2, 3),
        "finish": Finish.LENGTH,
    }
    asked = Sample(node=root, draw=0)
    first = SampleAnswer(
        row=7, sample_id=asked.key, node_id=root.node_id, draw=0, steps=1, number=0, ended=False, n_tokens=4, n_prompt_tokens=9,
        seconds=0.5, took=0.25, **of_first,  # type: ignore[arg-type]
    )  # fmt: skip
    (node,) = nodes_of(SEARCHED.problem_id, asked.node, first)
    rest = Sample(node=node, draw=4, steps=WHOLE)
    second = SampleAnswer(
        row=7, sample_id=rest.key, node_id=node.node_id, draw=4, steps=WHOLE, number=1, ended=True, answer="3", n_tokens=3,
        verdict=Verdict.CORRECT, n_prompt_tokens=11, **of_rest,  # type: ignore[arg-type]
    )  # fmt: skip
    *_, last = nodes_of(SEARCHED.problem_id, rest.node, second)
    scores = [
        ScoreAnswer(
            row=7, prefix_id=node.prefix_id, step=1, score=0.5, raw_score=0.75, reliability=0.5, n_tokens=9, took=1.0
        ),
        ScoreAnswer(
            row=7, prefix_id=last.prefix_id, step=3, score=None, raw_score=None, fault="too_long", n_computed=3
        ),
    ]
    return [first, second], scores


def tables_of_search() -> dict[str, pa.Table]:
    samples, scores = log_of_search()
    search = TwoSteps(SearchConfig(n=1, accept=0.5))
    ended = ProblemSearch(SEARCHED, search)
    ended.replay(samples, scores)
    return {
        "samples": SAMPLES.to_table(samples),
        "stepscores": STEP_SCORES.to_table(scores),
        **tables_of([ended], search.settings, "m"),
    }


def test_the_log_of_a_search_comes_back_as_it_went_in_and_says_what_was_found() -> None:
    tables, (samples, scores) = tables_of_search(), log_of_search()
    for name, table in tables.items():
        assert table.schema.equals(TABLES[name].schema)
        table.validate(full=True)
    assert SAMPLES.from_table(tables["samples"]) == samples
    assert STEP_SCORES.from_table(tables["stepscores"]) == scores
    (candidate,) = tables["candidates"].to_pylist()
    assert candidate["steps"] == ["one", "2ф", "3"]
    assert candidate["step_scores"] == [0.5, None, None]
    assert (candidate["chosen"], candidate["cut"], candidate["outcome"], candidate["fault"]) == (
        True,
        True,
        True,
        "too_long",
    )
    assert candidate["policy_tokens"] == 5
    (search,) = tables["searches"].to_pylist()
    assert (search["chosen"], search["trusted"], search["weakest_step"], search["verdict"]) == (0, False, 1, "correct")
    assert (search["policy_tokens"], search["steps"], search["scored"], search["unscored"]) == (7, 3, 1, 1)


def every_table() -> dict[str, pa.Table]:
    rollout = Rollout(
        rollout_id=rollout_id("e" * 20, 4), prefix_id="e" * 20, problem_id=PROBLEM.problem_id, step_index=1, issue_index=4,
        round=0, reached_prefix_id=None, text="so 3", finish=Finish.LENGTH, n_tokens=2, answer="\\frac{1}{2}",
        verdict=Verdict.TIMEOUT, grader="g1", token_ids=(5, 6),
    )  # fmt: skip
    drawn = SampledSolution(
        chain_id=CHAIN.chain_id, problem_id=CHAIN.problem_id, source_id=CHAIN.source_id, draw=2, text=CHAIN.text,
        token_ids=CHAIN.token_ids, ends=CHAIN.ends, token_ends=CHAIN.token_ends, finish=Finish.STOP,
        answer="\\frac{1}{2}", verdict=Verdict.TIMEOUT,
    )  # fmt: skip
    row = InputRow(location=RowLocation(file="ф.jsonl", line=7), source_id=None, problem=PROBLEM, solution=CHAIN)
    bare = InputRow(location=RowLocation(file="ф.jsonl", line=8), source_id="x", problem=PROBLEM, solution=None)
    known = {"row": 0, "chain_id": "c" * 20, "problem_id": "p" * 20, "problem": "ф?", "steps": ["one", "two"]}
    to_score = pa.Table.from_pylist([{**known, "prefix_ids": ["e" * 20, "f" * 20]}], schema=TABLES["chains"].schema)
    scored = [StepScores(scores=(0.25, None), positions=(7, None), fault="too_long", n_tokens=9)]
    return {
        "inputs": INPUTS.to_table([row, bare]),
        "solutions": SOLUTIONS.to_table([drawn]),
        "rollouts": ROLLOUTS.to_table([rollout]),
        "promotions": PROMOTIONS.to_table([PROMOTED]),
        "allotments": pa.Table.from_pylist(
            [{"unit_id": "a" * 20, "problem_id": "p" * 20, "budget": 2**40}], schema=TABLES["allotments"].schema
        ),
        "rejects": REJECTS.to_table(
            [Reject(location=RowLocation(file="f", line=1), reason=RejectReason.NOT_JSON, detail="no JSON")]
        ),
        "verdicts": pa.Table.from_pylist(
            [{"rollout_id": "a-0", "answer": "3", "verdict": "correct", "grader": "g1"}],
            schema=TABLES["verdicts"].schema,
        ),
        "labels": labels([labelled(), labelled(answer=None, outcome=None)]),
        "kernels": KernelLearner().to_table(PRIOR),
        "chains": to_score,
        "critiques": critiques(),
        "findings": findings_of(to_score),
        "readings": READINGS.to_table([NewReading(f"{number:020d}", each) for number, each in enumerate(READ)]),
        "scores": scores_table(to_score, scored, aggregation=Aggregation.last, model="m"),
        "reliabilities": learned_table(learn([]), 0),
        **tables_of_search(),
        "states": pa.Table.from_pylist(
            [{"estimator": "mine", "version": 1, "chains": 3, "state": '{"a": 0.25}'}], schema=TABLES["states"].schema
        ),
    }


def test_every_table_is_tested_for_its_readers() -> None:
    assert every_table().keys() == set(OURS)


OF_COLUMNS = ("rollouts", "labels", "scores", "candidates", "searches")
"""Tables that are written by column, or read as only a part of their records."""


@pytest.mark.parametrize("name", sorted({*OURS} - {*OF_COLUMNS}))
def test_rows_come_back_as_they_went_in(name: str) -> None:
    table = every_table()[name]
    table.validate(full=True)
    assert TABLES[name].to_table(TABLES[name].from_table(table)).equals(table)


@pytest.mark.parametrize("name", OURS)
def test_every_table_opens_in_pyarrow_and_polars(name: str, tmp_path: Path) -> None:
    table = every_table()[name]
    path = tmp_path / write_shard(LocalStorage(tmp_path), name, "d" * 20, [table]).file
    assert pq.read_table(path, page_checksum_verification=True).to_pylist() == table.to_pylist()
    assert pads.dataset(path.parent).to_table().to_pylist() == table.to_pylist()
    assert pl.read_parquet(path.parent / "*.parquet").to_dicts() == table.to_pylist()


def test_every_table_opens_in_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_DATASETS_DISABLE_PROGRESS_BARS"):
        monkeypatch.setitem(os.environ, name, "1")
    datasets = pytest.importorskip("datasets")
    for name, table in every_table().items():
        write_shard(LocalStorage(tmp_path), name, "d" * 20, [table])
        files = str(tmp_path / name / "*.parquet")
        loaded = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
        assert loaded.to_list() == table.to_pylist()


def test_what_a_consensus_learned_is_read_as_it_was_written() -> None:
    table = learned_table(learn([ChainEvidence(steps=2, outcome=True, monte_carlo=(0.1, 0.2, 0.7))]), 1)
    assert learned_table(learned_from(table), 1).equals(table)
