"""What an input asks for, counted with the worker's own planner: chains, prefixes, prompt tokens, and what does not fit."""

import heapq
from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.config.label import LabelConfig
from pipeline.core.ids import content_id
from pipeline.core.records import InputRow, Reject, SampledSolution
from pipeline.engines.base import PolicyFacts
from pipeline.estimators.tree import Tree
from pipeline.runtime.draw import SolutionDrawer
from pipeline.runtime.judge import Judge
from pipeline.runtime.planned import Planner, UnitPlan
from pipeline.runtime.unique import DistinctPrompts

SHOWN = 20
"""Prefixes that do not fit the context, of which a plan says where they are."""


@dataclass(slots=True, kw_only=True)
class Counted:
    """Sums over rows that have been counted; `bare` are further problems, whose chains are yet to be drawn."""

    problems: int = 0
    bare: int = 0
    chains: int = 0
    steps: int = 0
    prefixes: int = 0
    too_long: int = 0
    prompt_tokens: int = 0
    rejects: "Tally[str]" = field(default_factory=Tally)
    unfit: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Chains that the policy has drawn; see `planned.Drawn`."""

    solutions: Mapping[tuple[str, int], SampledSolution] = field(default_factory=dict)


class Counter:
    """Counts rows unit by unit, all rows of a problem together."""

    def __init__(self, config: LabelConfig, policy: PolicyFacts, judge: Judge) -> None:
        drawer = SolutionDrawer(config.sampling, config.data, policy, judge)
        self._planner = Planner(config.policy.prompt, config.sampling, policy, judge, drawer)
        self._distinct = DistinctPrompts()
        self.counted = Counted()

    @property
    def distinct_prompt_tokens(self) -> int:
        """Of all prompts: what several begin with, once."""
        return self._distinct.tokens

    async def count(self, rows: Sequence[InputRow], draws: Draws | None = None) -> list[Tree]:
        """Add rows; those without a chain need `draws`. The trees of their problems."""
        plan = UnitPlan()
        fitting = self._planner.with_roots(plan, rows)
        await self._planner.plan_chains(plan, fitting, draws or Draws())
        counted = self.counted
        asked = [each for each in plan.asked.values() if each.fits]
        prompts = [each.prefix.prompt_ids for each in asked]
        counted.problems += _problems(fitting)
        counted.chains += len(plan.chains)
        counted.steps += sum(len(chain.prefix_ids) for chain in plan.chains)
        counted.prefixes += len(asked)
        counted.too_long += len(plan.asked) - len(asked)
        counted.prompt_tokens += sum(map(len, prompts))
        self._distinct.add(prompts)
        self._note(plan.rejects)
        return plan.trees

    def count_bare(self, rows: Sequence[InputRow]) -> None:
        """Add problems of which nothing is known but that the policy will draw chains for them."""
        plan = UnitPlan()
        self.counted.bare += _problems(self._planner.with_roots(plan, rows))
        self._note(plan.rejects)

    def _note(self, rejects: Iterable[Reject]) -> None:
        for reject in rejects:
            if reject.step_index is None:
                self.counted.rejects[reject.reason.value] += 1
            if len(self.counted.unfit) < SHOWN:
                self.counted.unfit.append(f"{reject.place.file}:{reject.place.line}: {reject.detail}")


def _problems(rows: Iterable[InputRow]) -> int:
    return len({row.problem.problem_id for row in rows})


class Draw:
    """Some problems of many, drawn at random in one pass, with their rows: equal seeds draw the same ones."""

    def __init__(self, problems: int, seed: int) -> None:
        self._problems = problems
        self._seed = seed
        self._kept: list[tuple[int, str, list[InputRow]]] = []

    def offer(self, problem_id: str, rows: list[InputRow]) -> None:
        """All rows of a problem, once."""
        ticket = -int(content_id("pilot", str(self._seed), problem_id), 16)
        entry = (ticket, problem_id, rows)
        if len(self._kept) < self._problems:
            heapq.heappush(self._kept, entry)
        elif entry > self._kept[0]:
            heapq.heapreplace(self._kept, entry)

    def problems(self, most_rows: int | None = None) -> list[list[InputRow]]:
        """The rows of each drawn problem, in the order of the draw; of more than `most_rows` as many, drawn at random too."""
        return [sorted(rows, key=self._ticket)[:most_rows] for _, _, rows in sorted(self._kept, reverse=True)]

    def _ticket(self, row: InputRow) -> str:
        return content_id("pilot", str(self._seed), row.solution.chain_id if row.solution else "")
