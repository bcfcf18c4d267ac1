"""What further tokens are worth in sibling pairs: prefixes that `grow` promotes, against more chains and more rollouts.

A run of the short tiny policy with a fixed number of rollouts of each prefix, and about as many tokens again, spent in several
ways. A pair is two labelled steps after the same prefix, a good and a bad one; arithmetic says which pairs are right, as in
`harvest`. A chain that makes up for an error is right for arithmetic no more, although its value may be high, so pairs below a
first error count as neither.
"""

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.bench.harvest import NEITHER, PROBLEMS, REVERSED, ROLLOUTS, SEED, SOLUTIONS, TRUE, labelled_pairs, read
from tests.loop.problems import exercises
from tests.loop.tiny_runs import TinyRun, TinyRuns
from tests.tiny.arithmetic import POLICY_SIZE, Exercise

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
    runs = TinyRuns(folder, SEED)
    first = runs.labelled("base", chosen, solutions=SOLUTIONS, rollouts=ROLLOUTS)
    base = pairs_of(first, chosen)
    yield (
        f"the run: {base.tokens:,} tokens, {base.kinds[TRUE]:,} true pairs, {base.kinds[REVERSED]:,} reversed, "
        f"{base.kinds[NEITHER]:,} neither"
    )
    yield "| further tokens for | tokens | true | reversed | neither | true per 1,000 tokens |"
    yield "|---|---|---|---|---|---|"
    for number, (name, spend) in enumerate(arms(runs, first, chosen, base.tokens).items()):
        yield _row(name, base, pairs_of(spend(f"run-{number}"), chosen))


def arms(
    runs: TinyRuns, base: TinyRun, chosen: Sequence[Exercise], budget: int
) -> Mapping[str, Callable[[str], TinyRun]]:
    """What the tokens are spent for -> the run of a given name in which they are."""

    def grown(pick: str, tokens: int, name: str) -> TinyRun:
        return runs.grown(name, base, f"grow={pick}", f"grow.budget={tokens}")

    def labelled(name: str, *, solutions: int = SOLUTIONS, rollouts: int = ROLLOUTS) -> TinyRun:
        return runs.labelled(name, chosen, solutions=solutions, rollouts=rollouts)

    return {
        **{f"grow={pick}": partial(grown, pick, budget) for pick in PICKERS},
        "grow=pairs, a third": partial(grown, "pairs", budget // 3),
        "more chains": partial(labelled, solutions=MORE_SOLUTIONS),
        "more rollouts": partial(labelled, rollouts=2 * ROLLOUTS),
    }


def pairs_of(run: TinyRun, chosen: Sequence[Exercise]) -> Pairs:
    kinds = Counter(pair.kind for problem in read(run.run_dir, chosen) for pair in labelled_pairs(problem))
    return Pairs(kinds, run.tokens)


def _row(name: str, base: Pairs, found: Pairs) -> str:
    tokens = found.tokens - base.tokens
    true, *others = (found.kinds[kind] - base.kinds[kind] for kind in (TRUE, REVERSED, NEITHER))
    return f"| {name} | {tokens:,} | {true:,} | {others[0]:,} | {others[1]:,} | {1000 * true / tokens:.2f} |"
