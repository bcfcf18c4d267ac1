"""Labels of a pool's chains by any estimator.

The estimator decides which rollouts it wants, through the functions that the worker calls, and gets them from the pool instead
of an engine. So all estimators see the same rollouts.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

from pipeline.__main__ import compose_label
from pipeline.config.choices import Splitter
from pipeline.config.label import EstimatorConfig, LabelConfig
from pipeline.core.records import (
    Chain,
    ChainShape,
    Finish,
    Problem,
    RolloutOutcome,
    Solution,
    Trials,
    Verdict,
)
from pipeline.data.steps import split
from pipeline.estimators.labelling import labels_of
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.tree import Tree, trees_of, trials_of
from pipeline.graders.base import Checker
from pipeline.graders.question import grade_at_once, grade_in_time, outcome_of
from pipeline.runtime.planner import rollout_prices
from tests.bench.loop.pool import PoolPart, completions, is_cut
from tests.bench.loop.sampler import Sampler
from tests.tiny.arithmetic import Exercise
from tests.tiny.policy import OVERRIDES

UNIT = 32
"""Problems, as by default in a run."""

Row = dict[str, Any]
"""A row of `labels`."""


def label_settings(*words: str) -> LabelConfig:
    """The settings of `label` with which the tiny policy is used."""
    return compose_label([*OVERRIDES, "data.path=unused", "run_dir=unused", *words])


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Rows of `labels`. `tokens`: generated for the chains, all draws of them, and for their rollouts."""

    rows: tuple[Row, ...]
    rollouts: int
    tokens: int


@dataclass(kw_only=True)
class Graded:
    """A part of a pool under the project's checker."""

    part: PoolPart
    checker: Checker
    sampler: Sampler
    added: int = 0
    _completions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _verdicts: dict[tuple[str, str], tuple[Verdict, str | None]] = field(default_factory=dict)

    @cached_property
    def exercises(self) -> dict[str, Exercise]:
        return {exercise.problem: exercise for exercise in self.part.exercises}

    def chains(self, problem: str, count: int) -> list[Chain]:
        """The different chains among the first `count` draws for a problem."""
        texts = dict.fromkeys(self.part.draws[problem][:count])
        return [chain for text in texts if (chain := self._chain(problem, text)) is not None]

    def chain_tokens(self, problem: str, count: int) -> int:
        """Of the first `count` draws for a problem."""
        return sum(len(text) + (not is_cut(text)) for text in self.part.draws[problem][:count])

    def completion(self, prefix: str, issue: int) -> str:
        """The rollout of this number of a prefix, as far as they are drawn."""
        return self._completions.get(prefix, self.part.rollouts.get(prefix, ()))[issue]

    def outcome(self, prefix: str, issue: int, around: int, known: Set[str]) -> RolloutOutcome:
        """A rollout, issued in round `around`. `known`: the prefixes of the chains to be labelled."""
        problem, _, begun = prefix.partition("\n")
        completion = self.completion(prefix, issue)
        verdict, _ = self._judged(problem, begun + completion, is_cut(completion))
        return RolloutOutcome(
            prefix_id=prefix,
            issue_index=issue,
            round=around,
            reached_prefix_id=_reached(prefix, completion, known),
            finish=Finish.LENGTH if is_cut(completion) else Finish.STOP,
            n_tokens=len(completion) + (not is_cut(completion)),
            verdict=verdict,
        )

    def hold(self, wanted: Mapping[str, int]) -> None:
        """Draw what the pool has too few rollouts for: prefix -> the number that is wanted."""
        for prefix in wanted.keys() - self._completions.keys():
            self._completions[prefix] = self.part.rollouts.get(prefix, ())
        lacking = sorted(prefix for prefix, count in wanted.items() if len(self._completions[prefix]) < count)
        if lacking:
            self.added += len(lacking)
            most = max(wanted[prefix] - len(self._completions[prefix]) for prefix in lacking)
            for prefix, more in completions(self.sampler, lacking, most).items():
                self._completions[prefix] += more

    def _chain(self, problem: str, text: str) -> Chain | None:
        ends = split(text, Splitter.newline)
        if not ends:
            return None
        verdict, answer = self._judged(problem, text, is_cut(text))
        return Chain(
            problem=Problem(problem_id=problem, text=problem, golds=(str(self.exercises[problem].answer),)),
            solution=Solution(
                chain_id=f"{problem}\n{text}",
                problem_id=problem,
                source_id=problem,
                text=text,
                ends=ends,
                complete=not is_cut(text),
            ),
            root_prefix_id=f"{problem}\n",
            prefix_ids=tuple(f"{problem}\n{text[:end]}" for end in ends),
            final_answer=answer,
            outcome=None if answer is None else verdict is Verdict.CORRECT,
            policy="tiny",
        )

    def _judged(self, problem: str, text: str, cut: bool) -> tuple[Verdict, str | None]:
        """By the lines from the first that states an answer on: no other line counts."""
        golds = (str(self.exercises[problem].answer),)
        stated = text[text.find("#") :] if "#" in text else ""
        key = (golds[0], f"{stated}{cut}")
        if key not in self._verdicts:
            finish = Finish.LENGTH if cut else Finish.STOP
            grade = grade_at_once(self.checker, golds, stated, finish) or grade_in_time(
                self.checker, golds, stated, finish
            )
            answer = self.checker.stated_answer(stated, complete=not cut)
            self._verdicts[key] = grade.verdict, answer
            assert answer is None or outcome_of(grade) is not None
        return self._verdicts[key]


def labelled(
    graded: Graded, problems: Sequence[str], estimator: EstimatorConfig, *, draws: int, rollouts: int
) -> Labelled:
    """Labels of the chains of `draws` draws for each of these problems; `rollouts` as `sampling.rollouts`.

    A rollout that an estimator asks for and the pool does not have is drawn, in this process only."""
    rule = estimator_for(estimator)
    state = rule.learner.initial() if rule.learner else None
    rows: list[Row] = []
    count = tokens = 0
    for start in range(0, len(problems), UNIT):
        chains = [chain for problem in problems[start : start + UNIT] for chain in graded.chains(problem, draws)]
        shapes = [replace(chain.shape, prices=rollout_prices((0, *chain.solution.ends))) for chain in chains]
        trials = _sampled(graded, shapes, estimator, rollouts, state)
        if rule.learner:
            state = rule.learner.learn(state, trees_of(shapes), trials)
        rows += labels_of(chains, trials, rule, state).to_pylist()
        count += sum(len(each.outcomes) for each in trials.values())
        tokens += sum(each.counts.tokens for each in trials.values())
        tokens += sum(graded.chain_tokens(problem, draws) for problem in problems[start : start + UNIT])
    return Labelled(rows=tuple(rows), rollouts=count, tokens=tokens)


def _sampled(
    graded: Graded, shapes: Sequence[ChainShape], estimator: EstimatorConfig, rollouts: int, state: Any
) -> dict[str, Trials]:
    """All rounds of a unit, until no rollout is requested."""
    rule = estimator_for(estimator)
    waiting: list[Tree] = trees_of(shapes)
    known = {prefix for tree in waiting for prefix in tree.prefix_ids}
    outcomes: dict[str, list[RolloutOutcome]] = {}
    trials: dict[str, Trials] = {}
    around = 0
    while waiting:
        asked = rule.next_rollouts(waiting, trials, rollouts, state)
        wanted = {prefix: more for problem in asked for prefix, more in problem.items()}
        graded.hold({prefix: len(outcomes.get(prefix, [])) + more for prefix, more in wanted.items()})
        for prefix, more in wanted.items():
            have = outcomes.setdefault(prefix, [])
            issues = range(len(have), len(have) + more)
            have += [graded.outcome(prefix, issue, around, known) for issue in issues]
            trials |= trials_of(have)
        waiting = [tree for tree, problem in zip(waiting, asked, strict=True) if problem]
        around += 1
    return trials


def _reached(prefix: str, completion: str, known: Set[str]) -> str | None:
    """The longest known prefix that a completion of `prefix` reproduces."""
    lines = completion.splitlines(keepends=True)
    longer = [prefix + text for text in accumulate(lines)]
    found = None
    for text in longer:
        if text not in known:
            break
        found = text
    return found
