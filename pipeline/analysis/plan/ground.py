"""What expectations rest on: the drawn problems with what the pilot saw of them, or what is assumed instead."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.analysis.plan import assumed
from pipeline.analysis.plan.counted import Counter, Draws
from pipeline.analysis.plan.expected import Sampled, Stratum, success_rate
from pipeline.analysis.plan.extrapolated import mean
from pipeline.analysis.plan.pilot import UNKNOWN_SD, Measured
from pipeline.analysis.plan.simulated import Believed
from pipeline.analysis.plan.survey import Survey
from pipeline.config.label import LabelConfig
from pipeline.core.forecast import Pilot, Planned
from pipeline.core.records import InputRow
from pipeline.data.prompts import root_id
from pipeline.engines.base import PolicyFacts
from pipeline.engines.registry import policy_for
from pipeline.estimators.tree import Tree
from pipeline.graders.registry import checker_for
from pipeline.runtime.judge import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """See the module."""

    planned: Planned
    sampled: Sampled
    pilot: Pilot


def measured_ground(config: LabelConfig, policy: PolicyFacts, survey: Survey, pilot: Measured) -> Ground:
    """What a pilot found out, of problems with chains and then of bare ones."""
    draws = Draws(solutions=pilot.solutions)
    given, trees = asyncio.run(_drawn_trees(config, policy, survey.drawn, draws))
    drawn, trees_of_bare = asyncio.run(_drawn_trees(config, policy, survey.drawn_bare, draws))
    trees += trees_of_bare
    of_rollouts = zip(pilot.tokens, pilot.tokens_of_rollouts, strict=True)
    sampled = Sampled(
        strata=_strata(survey, trees),
        trees=trees,
        drawn_tokens=[float(tokens - own) for tokens, own in of_rollouts],
        believed=_completed(pilot.believed, trees),
    )
    told = Pilot(
        measured=True,
        problems=len(trees),
        chains=given.counted.chains + drawn.counted.chains,
        prefixes=given.counted.prefixes + drawn.counted.prefixes,
        rollouts=sum(pilot.rollouts),
        tokens=sum(pilot.tokens),
        seconds=pilot.summary.seconds_labelling,
        completion_tokens=mean(pilot.tokens_of_rollouts, pilot.rollouts),
        success_rate=success_rate(sampled),
        tokens_per_second=pilot.tokens_per_second,
        workers=pilot.offer.workers,
        devices=pilot.offer.devices,
        start_seconds=pilot.summary.seconds_starting,
    )
    planned = _with_drawn_chains(survey, drawn) if survey.bare else survey.planned
    return Ground(planned=planned, sampled=sampled, pilot=told)


def assumed_ground(config: LabelConfig, policy: PolicyFacts, survey: Survey, why_not: str) -> Ground:
    """What the settings say in place of a pilot; all problems have chains."""
    _, trees = asyncio.run(_drawn_trees(config, policy, survey.drawn, None))
    length, rate = assumed.completion_tokens(config), assumed.success_rate(config)
    planned = survey.planned
    context = planned.prompt_tokens / max(1, planned.prefixes) + length.expected / 2
    sampled = Sampled(
        strata=_strata(survey, trees),
        trees=trees,
        drawn_tokens=[0.0] * len(trees),
        believed=assumed.believed([tree for tree in trees if tree is not None], length.expected, rate.expected),
    )
    told = Pilot(
        measured=False,
        why_not=why_not,
        completion_tokens=length,
        success_rate=rate,
        tokens_per_second=assumed.tokens_per_second(config, context),
        workers=config.cluster.workers or 1,
        devices=config.cluster.gpus_per_worker or float(policy_for(config.policy).spread_over() or 1),
    )
    return Ground(planned=planned, sampled=sampled, pilot=told)


def _strata(survey: Survey, trees: Sequence[Tree | None]) -> list[Stratum]:
    """What a problem asks for grows with its prefixes; where the policy draws its chains, these are not known beforehand."""
    given = trees[: len(survey.drawn)]
    sizes = [0.0 if tree is None else float((~tree.closed).sum()) for tree in given]
    return [
        Stratum(sizes=sizes, size=float(survey.planned.prefixes)),
        Stratum(sizes=[1.0] * len(survey.drawn_bare), size=float(survey.bare)),
    ]


def _with_drawn_chains(survey: Survey, drawn: Counter) -> Planned:
    """What was counted, and for bare problems what the drawn ones of them come to."""
    planned, counted = survey.planned, drawn.counted
    factor = survey.bare / max(1, len(survey.drawn_bare))
    return replace(
        planned,
        chains=planned.chains + round(counted.chains * factor),
        steps=planned.steps + round(counted.steps * factor),
        prefixes=planned.prefixes + round(counted.prefixes * factor),
        prompt_tokens=planned.prompt_tokens + round(counted.prompt_tokens * factor),
        distinct_prompt_tokens=planned.distinct_prompt_tokens + round(drawn.distinct_prompt_tokens * factor),
        chains_drawn=True,
    )


async def _drawn_trees(
    config: LabelConfig, policy: PolicyFacts, drawn: Sequence[Sequence[InputRow]], draws: Draws | None
) -> tuple[Counter, list[Tree | None]]:
    """The drawn problems counted by themselves; and the tree of each, None where nothing of one is left to label."""
    with checker_for(config.grader) as checker:
        judge = Judge(checker, config.grader.processes)
        try:
            counter = Counter(config, policy, judge)
            trees = await counter.count([row for rows in drawn for row in rows], draws)
        finally:
            judge.close()
    by_root = {tree.chains[0].prefix_ids[0]: tree for tree in trees}
    return counter, [by_root.get(root_id(rows[0].problem.problem_id)) for rows in drawn]


def _completed(believed: Mapping[str, Believed], trees: Sequence[Tree | None]) -> dict[str, Believed]:
    """With the prefixes of which the pilot saw nothing: they are as others are on average."""
    usual = Believed(
        mean=float(np.mean([each.mean for each in believed.values()] or [0.5])),
        sd=UNKNOWN_SD,
        tokens=float(np.mean([each.tokens for each in believed.values()] or [1.0])),
    )
    known = (tree for tree in trees if tree is not None)
    return {prefix: believed.get(prefix, usual) for tree in known for prefix in tree.prefix_ids}
