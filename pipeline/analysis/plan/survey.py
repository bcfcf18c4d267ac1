"""The input of a run, read as `label` reads it and counted: and some of its problems, drawn for the pilot."""

import asyncio
import tempfile
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from pipeline.analysis.plan.counted import Counted, Counter, Draw
from pipeline.config.label import LabelConfig
from pipeline.core.forecast import Planned
from pipeline.core.progress import Status
from pipeline.core.records import InputRow
from pipeline.engines.base import PolicyFacts
from pipeline.graders.registry import checker_for
from pipeline.runtime.hands import Watcher
from pipeline.runtime.intake import stage
from pipeline.runtime.judge import Judge
from pipeline.runtime.stop import StopSignal
from pipeline.storage.commits import INPUT, Commit, State
from pipeline.storage.local import LocalStorage
from pipeline.storage.shards import read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.units import unit_rows, units_of

LEAST_PROBLEMS = 4
"""Drawn however long their chains are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What was counted of all rows, and the rows of the drawn problems: of those with chains, some or all of their chains, and
    of the `bare` ones, for which the policy draws chains. A problem with both kinds of rows counts as bare."""

    planned: Planned
    bare: int
    drawn: Sequence[Sequence[InputRow]]
    drawn_bare: Sequence[Sequence[InputRow]]


def surveyed(
    config: LabelConfig, policy: PolicyFacts, staged_id: str, most_rollouts: int, watch: Watcher, stop: StopSignal
) -> Survey:
    """Read and count the whole input. The drawn problems ask for about `most_rollouts` at most.

    Raises InputError where no row can be used, and what `stop` raises.
    """
    with tempfile.TemporaryDirectory(prefix="stepvalue-plan-") as folder, checker_for(config.grader) as checker:
        storage = LocalStorage(Path(folder))
        staged = stage(storage, staged_id, config.data, config.run, checker, stop.check)
        commit = Commit(
            kind=INPUT, chain_id=staged_id, number=0, state=State.WHOLE, shards=staged.shards, totals=staged.totals
        )
        judge = Judge(checker, config.grader.processes)
        counter = Counter(config, policy, judge)
        draws = {bare: Draw(config.plan.pilot_problems, config.plan.seed) for bare in (False, True)}
        try:
            units = list(units_of(storage, commit))
            for number, unit in enumerate(units):
                stop.check()
                watch(Status(stage="counting", units=len(units), units_done=number))
                rows = unit_rows(storage, unit)
                by_kind: dict[bool, list[InputRow]] = {False: [], True: []}
                for problem_id, together in groupby(rows, key=lambda row: row.problem.problem_id):
                    of_problem = list(together)
                    bare = any(row.solution is None for row in of_problem)
                    by_kind[bare] += of_problem
                    draws[bare].offer(problem_id, of_problem)
                asyncio.run(counter.count(by_kind[False]))
                counter.count_bare(by_kind[True])
        finally:
            judge.close()
        reasons = Tally(_reject_reasons(storage, commit))
    counted = counter.counted
    too_long = counted.rejects.total()
    drawn_bare = _share_of_bare(counted, config.plan.pilot_problems)
    return Survey(
        planned=Planned(
            rows=staged.totals.rows,
            used=staged.totals.used - too_long,
            rejected=staged.totals.rejected + too_long,
            rejects=dict((reasons + counted.rejects).most_common()),
            problems=counted.problems + counted.bare,
            chains=counted.chains,
            steps=counted.steps,
            prefixes=counted.prefixes,
            too_long=counted.too_long,
            prompt_tokens=counted.prompt_tokens,
            distinct_prompt_tokens=counter.distinct_prompt_tokens,
            context=policy.max_model_len,
            unfit=tuple(counted.unfit),
        ),
        bare=counted.bare,
        drawn=_affordable(
            draws[False], config.plan.pilot_problems - drawn_bare, counted, config.sampling.rollouts, most_rollouts
        ),
        drawn_bare=draws[True].problems()[:drawn_bare],
    )


def _share_of_bare(counted: Counted, drawn: int) -> int:
    """How many of the `drawn` problems are bare: their share of all, but not so few that they tell nothing."""
    share = round(drawn * counted.bare / max(1, counted.bare + counted.problems))
    return min(counted.bare, max(LEAST_PROBLEMS, share))


def _affordable(draw: Draw, problems: int, counted: Counted, rollouts: int, most_rollouts: int) -> list[list[InputRow]]:
    """So many drawn problems, with fewer of their chains and then fewer of them where they would ask for more."""
    of_a_chain = rollouts * max(1.0, counted.prefixes / max(1, counted.chains))
    chains = int(most_rollouts / of_a_chain)
    taken = max(LEAST_PROBLEMS, min(problems, chains))
    return draw.problems(most_rows=max(1, chains // taken))[:taken]


def _reject_reasons(storage: Storage, staged: Commit) -> Iterator[str]:
    for shard in staged.shards:
        if shard.table == "rejects":
            yield from map(str, read_shard(storage, shard, ["reason"])["reason"].to_pylist())
