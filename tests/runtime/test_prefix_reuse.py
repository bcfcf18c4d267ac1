"""Rollouts that reproduce a chain's next steps token for token are found, stored, and count for labels in every command."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.audit.run import audit
from pipeline.analysis.relabel import relabel
from pipeline.config.changes import AuditConfig, RelabelConfig
from pipeline.core.ids import content_id
from pipeline.core.records import ChainShape, Completion, Prefix, Request
from pipeline.engines import oracle
from pipeline.engines.oracle import OracleEngine
from pipeline.estimators.tree import tree_of
from pipeline.runtime.prefix_reuse import PrefixMatcher
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process
from tests.settings import EstimatorChange, compose_label


def prefix(name: str, *token_ids: int) -> Prefix:
    return Prefix(prefix_id=name, step_index=0, text="", prompt_ids=token_ids)


def steps(chains: Sequence[Sequence[Prefix]]) -> PrefixMatcher:
    shapes = [ChainShape(prefix_ids=tuple(each.prefix_id for each in chain), outcome=None) for chain in chains]
    return PrefixMatcher([tree_of(shapes)], {each.prefix_id: each for chain in chains for each in chain})


LINE = [prefix("p", 9), prefix("a", 9, 1, 2), prefix("b", 9, 1, 2, 3), prefix("c", 9, 1, 2, 3, 4, 4)]


def test_a_step_in_other_tokens_is_not_taken_nor_what_is_behind_it() -> None:
    other = [LINE[0], prefix("a", 9, 12), *LINE[2:]]
    assert steps([other]).reached_prefix("p", (1, 2, 3, 4, 4)) is None
    assert steps([other]).reached_prefix("b", (4, 4)) == "c"
    assert steps([[LINE[0], prefix("same", 9), prefix("a", 9, 1)]]).reached_prefix("p", (1,)) is None


def test_where_a_step_begins_as_another_one_the_shorter_one_is_taken() -> None:
    forked = [[LINE[0], prefix("long", 9, 1, 2, 3), prefix("end", 9, 1, 2, 3, 4)], [LINE[0], prefix("short", 9, 1, 2)]]
    assert steps(forked).reached_prefix("p", (1, 2, 3, 4)) == "short"
    assert steps(forked).reached_prefix("long", (4,)) == "end"


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=3), min_size=1, max_size=5), st.data())
def test_what_is_reached_is_what_was_written(cuts: list[list[int]], data: st.DataObject) -> None:
    chain = [prefix("p0", 9)]
    for place, tokens in enumerate(cuts, start=1):
        chain.append(prefix(f"p{place}", *chain[-1].prompt_ids, *tokens))
    start = data.draw(st.integers(0, len(cuts)))
    rest = chain[-1].prompt_ids[len(chain[start].prompt_ids) :]
    written = (*rest[: data.draw(st.integers(0, len(rest)))], *data.draw(st.lists(st.integers(0, 2), max_size=2)))
    whole = chain[start].prompt_ids + written
    behind = [each for each in chain[start + 1 :] if whole[: len(each.prompt_ids)] == each.prompt_ids]
    assert steps([chain]).reached_prefix(f"p{start}", written) == (behind[-1].prefix_id if behind else None)


SOLUTION = ("5 + 5 = 10.", "10 + 1 = 11.", "11 it is.", "The answer is 11.")


def rows() -> list[dict[str, Any]]:
    return [
        {"id": f"{n}", "problem": f"Case {n}: what is 5 + 5 + 1?", "answer": "11", "steps": [*SOLUTION]}
        for n in range(6)
    ]


class _Imitator(OracleEngine):
    """An oracle that writes the next step of the chain half of the time, and then perhaps the step after it."""

    def _complete(self, request: Request, keep_tokens: bool) -> Completion:
        done = super()._complete(request, keep_tokens)
        text, whole = done.text, "\n".join(SOLUTION)
        ahead = whole[len(request.prefix.text) :].splitlines(keepends=True)[:-1]
        coin = int(content_id("rollout", request.request_id)[-4:], 16)
        copied = "".join(ahead[: (0, 0, 1, 2)[coin % 4]])
        text = copied + done.text
        return replace(done, text=text, token_ids=tuple(text.encode()) if keep_tokens else ())


def run(folder: Path, *overrides: str) -> Path:
    data = write_rows(folder / "rows.jsonl", rows())
    settings = [f"data.path={data}", f"run_dir={folder / 'run'}", "policy=lab", "estimator=pooled"]
    with patch.object(oracle, "OracleEngine", _Imitator):
        label_in_process(compose_label([*settings, "run.unit_problems=3", *overrides]))
    return folder / "run"


def rollouts(run_dir: Path) -> pl.DataFrame:
    return pl.read_parquet(run_dir / "rollouts" / "*.parquet")


def test_a_run_stores_what_was_reached_and_its_labels_can_be_made_again(tmp_path: Path) -> None:
    run_dir = run(tmp_path)
    log = rollouts(run_dir)
    labels = pl.read_parquet(run_dir / "labels" / "*.parquet")
    order = {
        name: place
        for root, names in labels.select("root_prefix_id", "prefix_ids").iter_rows()
        for place, name in enumerate((root, *names))
    }
    copied = pl.Series([text.split("So the work")[0].count(".") for text in log["text"]])
    gone = [
        0 if reached is None else order[reached] - order[begun]
        for begun, reached in log.select("prefix_id", "reached_prefix_id").iter_rows()
    ]
    assert gone == copied.to_list()
    assert {0, 1, 2} <= set(gone)
    assert audit(AuditConfig(run_dir=str(run_dir))).sound
    before = labels.sort("chain_id")
    relabel(RelabelConfig(run_dir=str(run_dir), estimator=EstimatorChange(threshold=0.3)))
    assert not pl.read_parquet(run_dir / "labels" / "*.parquet").sort("chain_id").equals(before)
    relabel(RelabelConfig(run_dir=str(run_dir), estimator=EstimatorChange(threshold=0.1)))
    assert pl.read_parquet(run_dir / "labels" / "*.parquet").sort("chain_id").equals(before)


def test_what_was_reached_outlives_an_engine_that_dies(tmp_path: Path) -> None:
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    whole = run(tmp_path / "whole")
    with patch.object(oracle, "_CHUNK", 4):
        cut = run(tmp_path / "cut", "policy.lab.fail_after=20")
    columns = ["rollout_id", "reached_prefix_id", "round"]
    logs = [rollouts(each).select(columns).sort("rollout_id") for each in (whole, cut)]
    assert logs[0].equals(logs[1])


def test_other_estimators_do_not_look(tmp_path: Path) -> None:
    run_dir = run(tmp_path, "estimator=fixed", "sampling.rollouts=2")
    assert rollouts(run_dir)["reached_prefix_id"].null_count() == len(rollouts(run_dir))
