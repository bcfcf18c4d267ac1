"""The counts of a run of `search` for its commit records."""

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.core.records import UNGRADED, Totals, Verdict
from pipeline.searches.base import Stop


def part_totals(samples: Iterable[pa.Table], scores: Iterable[pa.Table]) -> Totals:
    """The counts of answers that are committed while searches go on, from tables `samples` and `stepscores`: `tokens` of the
    policy and of the scorer (`solution_tokens`)."""
    return Totals(
        tokens=sum(_sum(table, "n_tokens") for table in samples),
        solution_tokens=sum(_sum(table, "n_computed") for table in scores),
    )


def search_totals(searches: pa.Table) -> Totals:
    """The counts of problems whose searches have ended, from the table `searches`.

    `chains` and `rollouts` are problems, `prefixes` sampled steps, `tokens` those of the policy, `solution_tokens` those that
    the scorer computed. The verdicts are those of the chosen chains. Of the beginnings of chains that were to be scored,
    `too_long` have no score, and `spent` have one."""
    verdicts = Counter(searches["verdict"].to_pylist())
    stops = Counter(searches["stopped"].to_pylist())
    return Totals(
        chains=searches.num_rows,
        rollouts=searches.num_rows,
        prefixes=_sum(searches, "steps"),
        tokens=_sum(searches, "policy_tokens"),
        solution_tokens=_sum(searches, "scorer_computed"),
        correct=verdicts[Verdict.CORRECT],
        incorrect=verdicts[Verdict.INCORRECT],
        no_answer=verdicts[Verdict.NO_ANSWER],
        ungraded=sum(verdicts[verdict] for verdict in UNGRADED),
        engine_failed=stops[Stop.FAILED],
        too_long=_sum(searches, "unscored"),
        spent=_sum(searches, "scored"),
    )


def _sum(table: pa.Table, column: str) -> int:
    return int(pc.sum(table[column]).as_py() or 0)
