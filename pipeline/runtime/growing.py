"""Promotes prefixes that rollouts wrote, so that a unit measures them: the work of `grow` within a unit.

After all rollouts of a unit are finished, the picker of the growth decides the next round of each problem from the problem's
own log, within the problem's allotment. The promotions are committed before any rollout of theirs is issued. So they are the
same after a kill, and do not depend on the order in which rollouts finish.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from pipeline.config.choices import BudgetUnit
from pipeline.config.label import DataConfig
from pipeline.core.ids import content_id
from pipeline.core.records import Chain, Prefix, Promotion
from pipeline.core.tables import ROLLOUTS, TOKEN_IDS
from pipeline.data.grown import grown_id, grown_prefixes
from pipeline.data.prompts import stem
from pipeline.data.steps import step_texts
from pipeline.engines.vllm.detokenize import Decode
from pipeline.pickers.base import Pick, Picker
from pipeline.pickers.rounds import next_picks, problem_of
from pipeline.runtime.planner import UnitPlan
from pipeline.runtime.rollout_log import RolloutLog
from pipeline.runtime.searching.pieces import StepCutter
from pipeline.trees.cut import step_cut
from pipeline.trees.tree import NO_LABEL, LabelledSteps, RolloutTree, WrittenRollout, rollout_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A growth of a run, for one unit. `number`: from 0. `rollouts`: at each promoted prefix. `strength`: see
    `trees.posterior`. `allotments`: what each problem may cost, by problem id, in `budget_unit`."""

    number: int
    picker: Picker
    budget_unit: BudgetUnit
    rollouts: int
    strength: float
    threshold: float
    allotments: Mapping[str, int]


class Promoter:
    """Promotes prefixes of the units of one worker. `fits`: whether rollouts of a prefix fit into the policy's context.
    `follows_steps`: whether the estimator asks which prefixes a rollout has passed through."""

    def __init__(
        self, data: DataConfig, decode: Decode, fits: Callable[[Prefix], bool], *, follows_steps: bool
    ) -> None:
        self.fits = fits
        self.cut = partial(StepCutter(data).cut, decode=decode, ended=True)
        """The steps of a rollout of a prefix, from the last step, the prompt and the tokens."""
        self._follows_steps = follows_steps
        self._cut = step_cut(data)

    def promotions(self, plan: UnitPlan, log: RolloutLog, growths: Sequence[Growth]) -> list[Promotion]:
        """The next promotions of a unit whose rollouts are all finished and committed. Empty: its growths are done."""
        for growth in growths:
            written = _written(log.files.rows(ROLLOUTS.name), growth.allotments)
            found = [
                promotion
                for problem_id, budget in growth.allotments.items()
                for promotion in self._of_problem(plan, log, growth, problem_id, written.get(problem_id, []), budget)
            ]
            if found:
                return found
        return []

    def _of_problem(
        self,
        plan: UnitPlan,
        log: RolloutLog,
        growth: Growth,
        problem_id: str,
        written: Sequence["_Written"],
        budget: int,
    ) -> list[Promotion]:
        chains = [_labelled(chain) for chain in plan.chains if chain.problem.problem_id == problem_id]
        tree = rollout_tree(problem_id, chains, [each.rollout for each in written], self._cut)
        earlier = [
            each for each in log.promotions or () if each.growth == growth.number and each.problem_id == problem_id
        ]
        left = budget - _spent(plan, earlier, written, growth.budget_unit)
        number = 1 + max((each.round for each in earlier), default=-1)
        closed: set[int] = set()
        while True:
            problem = problem_of(
                tree,
                strength=growth.strength,
                threshold=growth.threshold,
                rollouts=growth.rollouts,
                unit=growth.budget_unit,
                closed=closed,
            )
            picks = next_picks(growth.picker, problem, left)
            writer = _Writer(self, plan, growth, tree, written, chains, number)
            # Parents come before their children, so that a promotion can continue another one of the round.
            made = {pick.node: writer.promotion(pick, problem.costs[pick.node]) for pick in sorted(picks)}
            lost = {node for node, promotion in made.items() if promotion is None}
            if not lost:
                found = [promotion for promotion in made.values() if promotion is not None]
                return writer.with_passed(found) if self._follows_steps else found
            closed |= lost


class _Writer:
    """Writes the promotions of one round of a problem."""

    def __init__(
        self,
        promoter: Promoter,
        plan: UnitPlan,
        growth: Growth,
        tree: RolloutTree,
        written: Sequence["_Written"],
        chains: Sequence[LabelledSteps],
        number: int,
    ) -> None:
        self._promoter = promoter
        self._growth = growth
        self._tree = tree
        self._written = {each.rollout.rollout_id: each for each in written}
        self._number = number
        self._stems: dict[str, str] = {}
        """Prefix id -> its last step as the policy saw it; empty for the bare problem."""
        for chain in chains:
            for prefix_id, text in zip(chain.prefix_ids, ("", *chain.stems), strict=True):
                self._stems.setdefault(prefix_id, text)
        self._prefixes = {key: plan.asked[key].prefix for key in self._stems if key in plan.asked}
        self._measured = {prefix.prompt_ids: prefix for prefix in self._prefixes.values()}
        self._promoted = {key: plan.asked[key].prefix for key in plan.grown if key in self._stems}
        self._place = 0

    def promotion(self, pick: Pick, cost: float) -> Promotion | None:
        """The promotion of a node. None where the rollout that wrote it has no tokens, where these cannot be cut as its text
        is, and where rollouts of the prefix would not fit into the context."""
        tree, source = self._tree, self._tree.nodes[pick.node].source
        if source is None or source.prefix_id not in self._prefixes:
            return None
        base, ids = self._prefixes[source.prefix_id], self._written[source.rollout_id].token_ids
        if not ids:
            return None
        piece = self._promoter.cut(self._stems[base.prefix_id], base.prompt_ids, ids)
        ends, token_ends = piece.cut.ends[: source.steps], piece.cut.token_ends[: source.steps]
        if step_texts(piece.text, ends) != tree.steps(pick.node)[-source.steps :]:
            return None
        base, skipped = self._last_measured(base, ids, token_ends)
        begin, token_begin = (ends[skipped - 1], token_ends[skipped - 1]) if skipped else (0, 0)
        tokens = ids[token_begin : token_ends[-1]]
        promotion = Promotion(
            chain_id=content_id("grown", base.prefix_id, ",".join(map(str, tokens)), ",".join(map(str, token_ends))),
            problem_id=tree.problem_id,
            growth=self._growth.number,
            round=self._number,
            place=self._place,
            rollout_id=source.rollout_id,
            prefix_id=base.prefix_id,
            begin=token_begin,
            text=piece.text[begin : ends[-1]],
            token_ids=tokens,
            ends=tuple(end - begin for end in ends[skipped:]),
            token_ends=tuple(end - token_begin for end in token_ends[skipped:]),
            rollouts=self._growth.rollouts,
            gain=pick.gain,
            cost=cost,
        )
        *_, last = grown_prefixes(base, promotion)
        if not self._promoter.fits(last):
            return None
        self._place += 1
        self._measured[last.prompt_ids] = self._promoted[last.prefix_id] = last
        return promotion

    def with_passed(self, promotions: Sequence[Promotion]) -> list[Promotion]:
        """The promotions of the round with the rollouts that had passed through them."""
        passed: dict[str, list[str]] = {}
        longest_first = sorted(self._promoted.values(), key=lambda prefix: (-len(prefix.prompt_ids), prefix.prefix_id))
        below = {
            base.prefix_id: [
                (prefix.prefix_id, prefix.prompt_ids[len(base.prompt_ids) :])
                for prefix in longest_first
                if prefix is not base and prefix.prompt_ids[: len(base.prompt_ids)] == base.prompt_ids
            ]
            for base in self._prefixes.values()
        }
        for rollout_id, each in sorted(self._written.items()):
            if ways := below.get(each.rollout.prefix_id):
                ids = each.token_ids
                found = next((prefix_id for prefix_id, way in ways if ids[: len(way)] == way), "")
                passed.setdefault(found, []).append(rollout_id)
        ends = (grown_id(each, len(each.ends)) for each in promotions)
        return [each._replace(passed=tuple(passed.get(end, ()))) for each, end in zip(promotions, ends, strict=True)]

    def _last_measured(self, base: Prefix, ids: tuple[int, ...], token_ends: Sequence[int]) -> tuple[Prefix, int]:
        """The last measured prefix on the way from `base` to the end of the steps, and the number of steps up to it."""
        for steps in range(len(token_ends) - 1, 0, -1):
            found = self._measured.get(base.prompt_ids + ids[: token_ends[steps - 1]])
            if found is not None:
                return found, steps
        return base, 0


@dataclass(frozen=True, slots=True)
class _Written:
    """A rollout and where its tokens are. Few are ever read, and all together would take much memory."""

    rollout: WrittenRollout
    tokens: "pa.ChunkedArray[Any]"
    row: int

    @property
    def token_ids(self) -> tuple[int, ...]:
        return tuple(self.tokens[self.row].as_py())


def _written(tables: Sequence[pa.Table], problems: Mapping[str, Any]) -> dict[str, list[_Written]]:
    """The rollouts of some problems, by problem id."""
    found: dict[str, list[_Written]] = {}
    for table in tables:
        tokens = table[TOKEN_IDS]
        columns = (table[name].to_pylist() for name in ("problem_id", *WrittenRollout._fields))
        for row, (problem_id, *values) in enumerate(zip(*columns, strict=True)):
            if problem_id in problems:
                found.setdefault(problem_id, []).append(_Written(WrittenRollout(*values), tokens, row))
    return found


def _labelled(chain: Chain) -> LabelledSteps:
    """A chain of the plan as trees take it. Pickers do not read labels."""
    solution = chain.solution
    texts, begins = step_texts(solution.text, solution.ends), (0, *solution.ends)
    return LabelledSteps(
        steps=texts,
        stems=[stem(solution, number)[begins[number - 1] :] for number in range(1, len(begins))],
        prefix_ids=(chain.root_prefix_id, *chain.prefix_ids),
        labels=[NO_LABEL] * (len(texts) + 1),
        outcome=chain.outcome,
        grown=bool(chain.grown),
    )


def _spent(plan: UnitPlan, promotions: Sequence[Promotion], written: Sequence[_Written], unit: BudgetUnit) -> int:
    """What the rollouts of promoted prefixes have cost. One costs at least a token."""
    ours = {each.chain_id for each in promotions}
    prefixes = {prefix_id for prefix_id, each in plan.grown.items() if each.chain_id in ours}
    tokens = [each.rollout.n_tokens for each in written if each.rollout.prefix_id in prefixes]
    return len(tokens) if unit is BudgetUnit.rollouts else sum(max(1, each) for each in tokens)
