"""Reads the input as `label` does and counts chains, prefixes, prompt tokens and prefixes that do not fit the context.

The count uses the planner of the workers. The survey also draws some problems for the pilot.
"""

import asyncio
import heapq
from collections import Counter as Reasons
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pipeline.config.label import LabelConfig
from pipeline.core.forecast import PlannedWork
from pipeline.core.ids import content_id
from pipeline.core.progress import Status
from pipeline.core.records import InputRow, Reject, Tally
from pipeline.engines.base import PolicyFacts
from pipeline.engines.oracle import ByteTokenizer
from pipeline.estimators.tree import Tree
from pipeline.graders.registry import checker_for
from pipeline.runtime.async_grader import AsyncGrader
from pipeline.runtime.distinct_prompts import DistinctPrompts
from pipeline.runtime.intake import refuse_equal_chains, stage
from pipeline.runtime.planner import Draws, Planner
from pipeline.runtime.stop import StopSignal
from pipeline.runtime.worker_handle import Watcher
from pipeline.storage.local import LocalStorage
from pipeline.storage.shards import read_shard
from pipeline.storage.temporary import temporary_folder
from pipeline.storage.units import unit_rows, units_of

LEAST_PROBLEMS = 4
"""The smallest number of drawn problems, however long their chains are."""
SHOWN = 20
"""The largest number of prefixes that do not fit the context and that a plan lists with their location."""
OF_CHAINS = ("chains", "steps", "prefixes", "prompt_tokens", "distinct_prompt_tokens")
"""The counts of `PlannedWork` that a problem has once its chains are known."""
CHARACTERS_PER_TOKEN = 3
"""SmolLM2's tokenizer makes a token of 3.2 characters of GSM8K, of 2.9 of ProcessBench, and of 2.8 of the sample."""


class CharacterTokenizer(ByteTokenizer):
    """Stands for a tokenizer that is not here: every CHARACTERS_PER_TOKEN characters are a token."""

    def encode(self, text: str) -> list[int]:
        return [hash(text[at : at + CHARACTERS_PER_TOKEN]) for at in range(0, len(text), CHARACTERS_PER_TOKEN)]

    encode_plain = encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The counts over all rows, and the rows of the drawn problems.

    `bare`: number of problems without a chain, for which the policy draws chains. A problem that has rows with and without a
    chain counts as bare. `drawn`: problems with chains, each with some or all of its chains. `drawn_bare`: bare problems.
    """

    planned: PlannedWork
    bare: int
    drawn: Sequence[Sequence[InputRow]]
    drawn_bare: Sequence[Sequence[InputRow]]


def survey_input(
    config: LabelConfig, policy: PolicyFacts, staged_id: str, most_rollouts: int, watch: Watcher, stop: StopSignal
) -> Survey:
    """Read and count the whole input. The drawn problems need at most about `most_rollouts` rollouts.

    Raises InputError if no row can be used, and the errors of `stop`.
    """
    with temporary_folder("stepvalue-plan-") as folder, checker_for(config.grader) as checker:
        storage = LocalStorage(folder / "run")
        staged = stage(storage, staged_id, config.data, config.run, checker, stop.check)
        judge = AsyncGrader(checker, config.grader.processes)
        counter = Counter(config, policy, judge)
        draws = {bare: ProblemDraw(config.plan.pilot_problems, config.plan.seed) for bare in (False, True)}
        try:
            units = list(units_of(storage, staged))
            for number, unit in enumerate(units):
                stop.check()
                watch(Status(stage="counting", units=len(units), units_done=number))
                rows = unit_rows(storage, unit)
                refuse_equal_chains(rows, config.sampling)
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
        reasons = Reasons(
            str(reason)
            for shard in staged.shards
            if shard.table == "rejects"
            for reason in read_shard(storage, shard, ["reason"])["reason"].to_pylist()
        )
    counted = counter.counted
    of_chains: dict[str, Any] = {name: counted[name] for name in OF_CHAINS}
    too_long = counter.rejects.total()
    drawn_bare = _share_of_bare(counted, config.plan.pilot_problems)
    return Survey(
        planned=PlannedWork(
            rows=staged.totals.rows,
            used=staged.totals.used - too_long,
            rejected=staged.totals.rejected + too_long,
            rejects=dict((reasons + counter.rejects).most_common()),
            problems=counted["problems"] + counted["bare"],
            too_long=counted["too_long"],
            context=policy.max_model_len,
            unfit=tuple(counter.unfit),
            **of_chains,
        ),
        bare=counted["bare"],
        drawn=_affordable(
            draws[False], config.plan.pilot_problems - drawn_bare, counted, config.sampling.rollouts, most_rollouts
        ),
        drawn_bare=draws[True].problems()[:drawn_bare],
    )


class Counter:
    """Counts rows unit by unit, all rows of a problem together. `counted`: sums over them by the names of `PlannedWork`; `bare`
    are further problems, whose chains are not drawn yet."""

    def __init__(self, config: LabelConfig, policy: PolicyFacts, judge: AsyncGrader) -> None:
        self._planner = Planner(config.policy.prompt, config.sampling, config.data, policy, judge)
        self._distinct = DistinctPrompts()
        self.counted = Tally()
        self.rejects: Reasons[str] = Reasons()
        self.unfit: list[str] = []

    async def count(self, rows: Sequence[InputRow], draws: Draws | None = None) -> list[Tree]:
        """Add rows and return the trees of their problems. Rows without a chain need `draws`."""
        plan = self._planner.begun(rows)
        await self._planner.plan_chains(plan, draws or {})
        asked = [each for each in plan.asked.values() if each.fits]
        prompts = [each.prefix.prompt_ids for each in asked]
        known = self._distinct.tokens
        self._distinct.add(prompts)
        self.counted += Tally(
            problems=_problems(plan.rows),
            chains=len(plan.chains),
            steps=sum(len(chain.prefix_ids) for chain in plan.chains),
            prefixes=len(asked),
            too_long=len(plan.asked) - len(asked),
            prompt_tokens=sum(map(len, prompts)),
            distinct_prompt_tokens=self._distinct.tokens - known,
        )
        self._note(plan.rejects)
        return plan.trees

    def count_bare(self, rows: Sequence[InputRow]) -> None:
        """Add problems whose chains the policy has not drawn yet."""
        plan = self._planner.begun(rows)
        self.counted += Tally(bare=_problems(plan.rows))
        self._note(plan.rejects)

    def _note(self, rejects: Iterable[Reject]) -> None:
        for reject in rejects:
            if reject.step_index is None:
                self.rejects[reject.reason.value] += 1
            if len(self.unfit) < SHOWN:
                self.unfit.append(f"{reject.location}: {reject.detail}")


class ProblemDraw:
    """Draws problems at random in one pass and keeps their rows. Equal seeds draw the same problems."""

    def __init__(self, problems: int, seed: int) -> None:
        self._problems = problems
        self._seed = seed
        self._kept: list[tuple[int, str, list[InputRow]]] = []

    def offer(self, problem_id: str, rows: list[InputRow]) -> None:
        """Offer all rows of a problem. Call it once per problem."""
        ticket = -int(content_id("pilot", str(self._seed), problem_id), 16)
        entry = (ticket, problem_id, rows)
        if len(self._kept) < self._problems:
            heapq.heappush(self._kept, entry)
        elif entry > self._kept[0]:
            heapq.heapreplace(self._kept, entry)

    def problems(self, most_rows: int | None = None) -> list[list[InputRow]]:
        """The rows of each drawn problem, in the order of the draw. A problem with more than `most_rows` rows keeps a random
        sample of that size."""
        return [sorted(rows, key=self._ticket)[:most_rows] for _, _, rows in sorted(self._kept, reverse=True)]

    def _ticket(self, row: InputRow) -> str:
        return content_id("pilot", str(self._seed), row.solution.chain_id if row.solution else "")


def _share_of_bare(counted: Tally, drawn: int) -> int:
    """How many of the `drawn` problems are bare: their share of all problems, but at least LEAST_PROBLEMS of them."""
    share = round(drawn * counted["bare"] / max(1, counted["bare"] + counted["problems"]))
    return min(counted["bare"], max(LEAST_PROBLEMS, share))


def _affordable(
    draw: ProblemDraw, problems: int, counted: Tally, rollouts: int, most_rollouts: int
) -> list[list[InputRow]]:
    """Up to `problems` drawn problems. To need at most `most_rollouts`, first the chains per problem are cut (to at least one),
    then the problems (to at least LEAST_PROBLEMS)."""
    of_a_chain = rollouts * max(1.0, counted["prefixes"] / max(1, counted["chains"]))
    chains = int(most_rollouts / of_a_chain)
    taken = max(LEAST_PROBLEMS, min(problems, chains))
    return draw.problems(most_rows=max(1, chains // taken))[:taken]


def _problems(rows: Iterable[InputRow]) -> int:
    return len({row.problem.problem_id for row in rows})
