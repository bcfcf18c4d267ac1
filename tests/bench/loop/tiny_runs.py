"""Runs of `label` with the short tiny policy in this process, where it starts at once. Runs with the same seed that
ask the same get the same answer: a run with more chains or problems holds the chains and rollouts of one with fewer.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.core.records import Verdict
from pipeline.engines.registry import policy_for
from tests.bench.loop.engine import TinyEngine
from tests.bench.loop.problems import row
from tests.conftest import write_rows
from tests.runtime.in_process import label_in_process
from tests.settings import compose_label
from tests.tiny.arithmetic import Exercise
from tests.tiny.policy import SHORT

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainDraw:
    """A chain that the policy wrote for a problem. `number`: which one of the problem, from 0 on. Equal chains have the same
    `chain_id`."""

    problem: str
    number: int
    chain_id: str
    tokens: int


@dataclass(frozen=True, kw_only=True)
class TinyRun:
    """A finished run. Problems are named by their text, as `problems.row` does."""

    run_dir: Path

    @cached_property
    def rows(self) -> list[Row]:
        """All of `labels`."""
        return self._table("labels").sort("chain_id").to_dicts()

    @cached_property
    def rollouts(self) -> int:
        return len(self._table("rollouts"))

    @cached_property
    def by_prefix(self) -> Mapping[str, tuple[float, float]]:
        """Prefix -> right answers and tokens of a rollout, on average."""
        found = self._table("rollouts").group_by("prefix_id")
        return {
            prefix: (right, tokens)
            for prefix, right, tokens in found.agg(
                (pl.col("verdict") == Verdict.CORRECT.value).mean(), pl.col("n_tokens").mean()
            ).iter_rows()
        }

    @cached_property
    def draws(self) -> list[ChainDraw]:
        return [
            ChainDraw(problem=problem, number=number, chain_id=chain, tokens=tokens)
            for problem, number, chain, tokens in self._table("solutions")
            .select("source_id", "draw", "chain_id", pl.col("token_ids").list.len())
            .iter_rows()
        ]

    @property
    def tokens(self) -> int:
        """Of all chains that were drawn, equal ones too, and of all rollouts."""
        return sum(draw.tokens for draw in self.draws) + int(self._table("rollouts")["n_tokens"].sum())

    def _table(self, name: str) -> pl.DataFrame:
        return pl.read_parquet(self.run_dir / name / "*.parquet")


class TinyRuns:
    """Runs in a folder. One that is there is not run again, and one that was interrupted goes on. `seed` decides what the
    policy samples."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        config = compose_label([*SHORT.overrides, "data.path=none", "run_dir=none"])
        facts = asyncio.run(policy_for(config.policy).facts(config.sampling))
        self._engine = TinyEngine(facts.tokenizer, seed, facts.policy)

    def labelled(self, name: str, exercises: Sequence[Exercise], *words: str, solutions: int, rollouts: int) -> TinyRun:
        """Chains of these problems with at most as many rollouts of each of their prefixes. `words`: more settings."""
        asked = (f"sampling.solutions={solutions}", "sampling.store_tokens=true", *words)
        return self._labelled(name, [row(exercise) for exercise in exercises], rollouts, *asked)

    def labelled_chains(self, name: str, chains: Sequence[Row], *, rollouts: int) -> TinyRun:
        """As many rollouts of each prefix of the chains of other runs. `chains`: rows of `labels`."""
        rows: list[dict[str, object]] = [
            {"id": each["chain_id"], "problem": each["problem"], "answer": each["gold_answer"], "steps": each["steps"]}
            for each in chains
        ]
        return self._labelled(name, rows, rollouts, "estimator=fixed")

    def _labelled(self, name: str, rows: Sequence[dict[str, object]], rollouts: int, *words: str) -> TinyRun:
        data = write_rows(self._folder / f"{name}.jsonl", rows)
        asked = (f"data.path={data}", f"run_dir={self._folder / name}", "cluster.workers=1")
        config = compose_label([*SHORT.overrides, *asked, f"sampling.rollouts={rollouts}", *words])
        label_in_process(config, engine=self._engine)
        return TinyRun(run_dir=self._folder / name)
