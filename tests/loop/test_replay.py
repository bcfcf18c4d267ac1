"""Labels that are replayed from a pool are those of a run whose engine answers from the same pool."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from pipeline.__main__ import compose_label
from pipeline.core.records import Completion, Finish, Request
from pipeline.engines.base import BatchEngine
from pipeline.engines.hugging_face import load_tokenizer
from pipeline.graders.registry import checker_for
from tests.checkout import write_rows
from tests.loop.plan import SIZE
from tests.loop.pool import is_cut, pool_part
from tests.loop.problems import exercises
from tests.loop.replay import UNIT, Graded, label_settings, labelled
from tests.loop.sampler import Sampler
from tests.runtime.in_process import label_in_process
from tests.tiny.policy import ASSET, OVERRIDES

pytestmark = pytest.mark.slow

PROBLEMS = UNIT + 8
"""Two units: the second begins with what the first has taught."""
DRAWS, ROLLOUTS = 2, 3
END = 0
"""The token that ends a completion."""
TIES = PROBLEMS // 8
"""Problems in which `pooled` may sample other prefixes that were worth as much: a run orders them by their ids, which are
hashes."""
NUMBERS = ("value", "value_sd", "root_value")
NEAR = 0.02
COLUMNS = (
    "value",
    "value_sd",
    "n_correct",
    "n_rollouts",
    "label",
    "root_value",
    "root_n_rollouts",
    "outcome",
    "origin",
)


class PoolEngine(BatchEngine):
    """Answers a request with the rollout of its number in the pool. A token is a character, or the end."""

    def __init__(self, graded: Graded) -> None:
        super().__init__(load_tokenizer(str(ASSET), None), policy="tiny", max_model_len=192)
        self._graded = graded

    async def complete(self, requests: Sequence[Request]) -> Sequence[Completion]:
        done = []
        for request in requests:
            prefix = self.tokenizer.decode(request.prefix.prompt_ids)
            self._graded.hold({prefix: request.issue_index + 1})
            text = self._graded.completion(prefix, request.issue_index)
            cut = is_cut(text)
            finish = Finish.LENGTH if cut else Finish.STOP
            ids = (*self.tokenizer.encode(text), *(() if cut else (END,)))
            done.append(Completion(request=request, text=text, finish=finish, n_tokens=len(ids), token_ids=ids))
        return done


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graded]:
    file = tmp_path_factory.mktemp("pool") / "pool.parquet"
    of = exercises(Random(8), SIZE, PROBLEMS)
    part = pool_part(file, of, draws=DRAWS, rollouts=ROLLOUTS, seed=2, show=lambda _: None)
    with checker_for(label_settings().grader) as checker:
        yield Graded(part=part, checker=checker, sampler=Sampler(3))


@pytest.mark.parametrize("estimator", ["fixed", "first_success", "pooled"])
def test_replayed_labels_are_those_of_a_run(graded: Graded, tmp_path: Path, estimator: str) -> None:
    problems = [exercise.problem for exercise in graded.part.exercises]
    settings = label_settings(f"estimator={estimator}").estimator
    replayed = labelled(graded, problems, settings, draws=DRAWS, rollouts=ROLLOUTS)
    data = write_rows(
        tmp_path / "rows.jsonl",
        [
            {
                "id": f"{problem}.{number}",
                "problem": problem,
                "answer": str(exercise.answer),
                "solution": chain.solution.text,
            }
            for problem, exercise in graded.exercises.items()
            for number, chain in enumerate(graded.chains(problem, DRAWS))
        ],
    )
    config = compose_label(
        [
            *OVERRIDES,
            f"data.path={data}",
            f"run_dir={tmp_path / 'run'}",
            f"estimator={estimator}",
            f"sampling.rollouts={ROLLOUTS}",
            "run.units_in_flight=1",
        ]
    )
    label_in_process(config, engine=PoolEngine(graded))
    run = pl.read_parquet(tmp_path / "run" / "labels" / "*.parquet").to_dicts()
    assert {_key(row) for row in run} == {_key(row) for row in replayed.rows}
    found = {_key(row): row for row in run}
    # What a unit has taught depends on its ties too, so values of `pooled` are nearly equal.
    near = NEAR if estimator == "pooled" else 1e-9
    others = {row["problem"] for row in replayed.rows if not _equal(found[_key(row)], row, near)}
    assert len(others) <= (TIES if estimator == "pooled" else 0)
    log = pl.read_parquet(tmp_path / "run" / "rollouts" / "*.parquet")
    draws = sum(graded.chain_tokens(problem, DRAWS) for problem in problems)
    if not others:
        assert log.height == replayed.rollouts
        assert log["n_tokens"].sum() + draws == replayed.tokens


def _key(row: dict[str, Any]) -> str:
    return json.dumps([row["problem"], row["steps"]])


def _equal(one: dict[str, Any], other: dict[str, Any], near: float) -> bool:
    return all(
        one[name] == (pytest.approx(other[name], abs=near) if name in NUMBERS else other[name]) for name in COLUMNS
    )
