"""What further tokens are worth in sibling pairs: prefixes that `grow` promotes, against more chains and more rollouts.

A run of the short tiny policy with a fixed number of rollouts of each prefix, and about as many tokens again, spent in several
ways. A pair is two labelled steps after the same prefix, a good and a bad one; arithmetic says which pairs are right, as in
`harvest`. A chain that makes up for an error is right for arithmetic no more, although its value may be high, so pairs below a
first error count as neither.
"""

import asyncio
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipeline.__main__ import compose_label
from pipeline.cli.compose import compose
from pipeline.cli.grow import GROW
from pipeline.engines.registry import policy_for
from pipeline.runtime.driver import Hiring, label
from pipeline.runtime.grow import grow
from pipeline.runtime.stop import StopSignal
from tests.bench.harvest import NEITHER, PROBLEMS, REVERSED, ROLLOUTS, SEED, SOLUTIONS, TRUE, labelled_pairs, read
from tests.conftest import write_rows
from tests.loop.engine import TinyEngine
from tests.loop.problems import exercises, row
from tests.runtime.in_process import in_process
from tests.tiny.arithmetic import POLICY_SIZE, Exercise
from tests.tiny.policy import SHORT

PICKERS = ("pairs", "errors", "uncertain", "omegaprm")
MORE_SOLUTIONS = 14
"""Chains of a problem that cost about as much again."""


class Pairs(NamedTuple):
    """Pairs of a run's labels by kind, and the tokens of its rollouts and chains."""

    kinds: Counter[str]
    tokens: int


def grow_pairs() -> None:
    chosen = exercises(random.Random(SEED), POLICY_SIZE, PROBLEMS)
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        for line in lines(Path(folder), chosen):
            print(line, flush=True)


def lines(folder: Path, chosen: Sequence[Exercise]) -> Iterator[str]:
    write_rows(folder / "rows.jsonl", [row(exercise) for exercise in chosen])
    labelled(folder, folder / "base")
    base = pairs_of(folder / "base", chosen)
    yield (
        f"the run: {base.tokens:,} tokens, {base.kinds[TRUE]:,} true pairs, {base.kinds[REVERSED]:,} reversed, "
        f"{base.kinds[NEITHER]:,} neither"
    )
    budget = base.tokens
    yield "| further tokens for | tokens | true | reversed | neither | true per 1,000 tokens |"
    yield "|---|---|---|---|---|---|"
    for number, (name, spend) in enumerate(arms(folder, budget).items()):
        run_dir = folder / f"run-{number}"
        spend(run_dir)
        yield _row(name, base, pairs_of(run_dir, chosen))


def arms(folder: Path, budget: int) -> Mapping[str, Callable[[Path], None]]:
    """What the tokens are spent for -> how."""
    found: dict[str, Callable[[Path], None]] = {
        f"grow={name}": partial(grown, folder, name, budget) for name in PICKERS
    }
    found["grow=pairs, a third"] = partial(grown, folder, "pairs", budget // 3)
    found["more chains"] = partial(labelled, folder, solutions=MORE_SOLUTIONS)
    found["more rollouts"] = partial(labelled, folder, rollouts=2 * ROLLOUTS)
    return found


def labelled(folder: Path, run_dir: Path, *, solutions: int = SOLUTIONS, rollouts: int = ROLLOUTS) -> None:
    config = compose_label(
        [
            *SHORT.overrides,
            *(f"data.path={folder / 'rows.jsonl'}", f"run_dir={run_dir}", "estimator=fixed", "cluster.workers=1"),
            *(f"sampling.rollouts={rollouts}", f"sampling.solutions={solutions}", "sampling.store_tokens=true"),
        ]
    )
    _with_engine(lambda hiring, stop: label(config, hiring, lambda _: None, stop))


def grown(folder: Path, name: str, budget: int, run_dir: Path) -> None:
    shutil.copytree(folder / "base", run_dir)
    config = compose(GROW, [f"run_dir={run_dir}", f"grow={name}", f"grow.budget={budget}"]).settings()
    _with_engine(lambda hiring, stop: grow(config, hiring, lambda _: None, stop))


def _with_engine(work: Callable[[Hiring, StopSignal], object]) -> None:
    """Run a command with the tiny policy in this process, where it starts at once."""
    config = compose_label([*SHORT.overrides, "data.path=none", "run_dir=none"])
    facts = asyncio.run(policy_for(config.policy).facts(config.sampling))
    stop = StopSignal()
    try:
        work(partial(in_process, engine=TinyEngine(facts.tokenizer, SEED, facts.policy)), stop)
    finally:
        stop.release()


def pairs_of(run_dir: Path, chosen: Sequence[Exercise]) -> Pairs:
    kinds = Counter(pair.kind for problem in read(run_dir, chosen) for pair in labelled_pairs(problem))
    rollouts = pl.read_parquet(run_dir / "rollouts" / "*.parquet")["n_tokens"].sum()
    chains = pl.read_parquet(run_dir / "solutions" / "*.parquet")["token_ids"].list.len().sum()
    return Pairs(kinds, int(rollouts) + int(chains))


def _row(name: str, base: Pairs, found: Pairs) -> str:
    tokens = found.tokens - base.tokens
    true, *others = (found.kinds[kind] - base.kinds[kind] for kind in (TRUE, REVERSED, NEITHER))
    return f"| {name} | {tokens:,} | {true:,} | {others[0]:,} | {others[1]:,} | {1000 * true / tokens:.2f} |"
