"""The pooled estimator on a virtual clock: rollouts come in as they finish, and a problem goes on when all of its own are in.

An engine works on SLOTS rollouts at a time, in the order of request, at a token per tick. What the estimator sees then is made
of the outcomes in the order in which they came in, by the function that the worker calls.
"""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.config.label import EstimatorConfig
from pipeline.core.records import Finish, RolloutOutcome, Trials, Verdict
from pipeline.estimators.pooled.kernel import PRIOR
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.tree import Tree, tree_of, trials_of
from tests.bench.estimators.chains import chains_of, shapes
from tests.bench.estimators.families import length
from tests.bench.estimators.ours import Ledger, decide
from tests.bench.estimators.rollouts import RIGHT, UNGRADED, Rollouts

SLOTS = 48
CHAINS = 128
STEPS = 8
SEED = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockComparison:
    """Prefixes sampled by either, and those whose trials differ between completion in order and completion on the clock.
    `overtaken`: rollouts that came in before one of the same prefix that was issued earlier."""

    prefixes: int
    differ: int
    overtaken: int


@dataclass(order=True, frozen=True, slots=True)
class _Due:
    """A rollout of a problem that the engine works on, and the tick at which it ends."""

    tick: int
    number: int
    problem: int
    prefix: str
    issue_index: int
    round: int


def compared(config: EstimatorConfig, *, rollouts: int, count: int = CHAINS) -> ClockComparison:
    """Both ways through one unit, with the prior kernel."""
    family = length(STEPS)
    chains = chains_of(family, count, SEED)
    drawn = Rollouts(family, chains, SEED)
    trees = [tree_of([chain]) for chain in shapes(chains)]
    ledger = Ledger(drawn=drawn)
    decide(trees, ledger, config, rollouts=rollouts, kernel=PRIOR)
    outcomes = on_the_clock(trees, drawn, config, rollouts=rollouts)
    came = trials_of(outcomes)
    prefixes = came.keys() | ledger.trials.keys()
    return ClockComparison(
        prefixes=len(prefixes),
        differ=sum(came.get(prefix) != ledger.trials.get(prefix) for prefix in prefixes),
        overtaken=_overtaken(outcomes),
    )


def on_the_clock(
    trees: Sequence[Tree], drawn: Rollouts, config: EstimatorConfig, *, rollouts: int
) -> list[RolloutOutcome]:
    """The outcomes of all rollouts, in the order of completion."""
    waiting: deque[_Due] = deque()
    working: list[_Due] = []
    came: list[list[RolloutOutcome]] = [[] for _ in trees]
    missing = [0] * len(trees)
    everything: list[RolloutOutcome] = []
    rounds = [0] * len(trees)

    def ask(problem: int) -> None:
        trials = trials_of(came[problem])
        (owed,) = estimator_for(config).next_rollouts([trees[problem]], trials, rollouts, PRIOR)
        for prefix, more in owed.items():
            issued = len(trials.get(prefix, Trials()).outcomes)
            for index in range(issued, issued + more):
                waiting.append(_Due(0, 0, problem, prefix, index, rounds[problem]))
        rounds[problem] += 1
        missing[problem] = sum(owed.values())

    for problem in range(len(trees)):
        ask(problem)
    tick = number = 0
    while waiting or working:
        while waiting and len(working) < SLOTS:
            due = waiting.popleft()
            end = tick + _tokens(drawn, due)
            number += 1
            heapq.heappush(working, _Due(end, number, due.problem, due.prefix, due.issue_index, due.round))
        due = heapq.heappop(working)
        tick = due.tick
        outcome = _outcome(drawn, due)
        came[due.problem].append(outcome)
        everything.append(outcome)
        missing[due.problem] -= 1
        if not missing[due.problem]:
            ask(due.problem)
    return everything


def _tokens(drawn: Rollouts, due: _Due) -> int:
    chain, step = map(int, due.prefix.split("."))
    return int(drawn.first(due.issue_index + 1).tokens[chain, step, due.issue_index])


def _outcome(drawn: Rollouts, due: _Due) -> RolloutOutcome:
    chain, step = map(int, due.prefix.split("."))
    block = drawn.first(due.issue_index + 1)
    outcome = block.outcomes[chain, step, due.issue_index]
    reached = int(block.reached[chain, step, due.issue_index])
    return RolloutOutcome(
        prefix_id=due.prefix,
        issue_index=due.issue_index,
        round=due.round,
        reached_prefix_id=f"{chain}.{step + reached}" if reached else None,
        finish=Finish.STOP,
        n_tokens=int(block.tokens[chain, step, due.issue_index]),
        verdict={RIGHT: Verdict.CORRECT, UNGRADED: Verdict.TIMEOUT}.get(int(outcome), Verdict.INCORRECT),
    )


def _overtaken(outcomes: Sequence[RolloutOutcome]) -> int:
    latest: dict[str, int] = {}
    overtaken = 0
    for outcome in reversed(outcomes):
        earliest_behind = latest.get(outcome.prefix_id)
        overtaken += earliest_behind is not None and earliest_behind < outcome.issue_index
        latest[outcome.prefix_id] = min(outcome.issue_index, latest.get(outcome.prefix_id, outcome.issue_index))
    return overtaken
