"""Checks the log and the totals of a whole unit against its input. Pure.

`audit` and the tests share it. It checks that the right chains exist, that each planned rollout exists exactly once, and that
the totals equal the sums of the log. It does not check whether a verdict or an outcome is correct; that takes the grader
(`regrade`).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from pipeline.core.formatting import format_count
from pipeline.core.ids import rollout_id
from pipeline.core.records import (
    UNGRADED,
    Chain,
    ChainShape,
    Finish,
    InputRow,
    Promotion,
    RolloutOutcome,
    RowLocation,
    SampledSolution,
    Totals,
    Trials,
    Verdict,
)
from pipeline.data.prompts import count_problems, prefix_id, root_id
from pipeline.estimators.base import Estimator, RolloutRange
from pipeline.estimators.tree import measured_prefixes, trees_of

Measurement = tuple[RowLocation, int]
"""A prefix of a row's chain: the location of the row, and the number of steps."""


class LoggedId(NamedTuple):
    """The columns of the log that identify a rollout."""

    rollout_id: str
    prefix_id: str
    issue_index: int


def expected_chains(
    rows: Iterable[InputRow],
    drawn: Sequence[SampledSolution],
    rejected: Collection[RowLocation],
) -> Iterator[tuple[InputRow, Chain]]:
    """The chains of a unit with their rows, in the order of its labels. Each row that is not rejected gives its own chain or
    its distinct draws."""
    for row in rows:
        problem_id = row.problem.problem_id
        draws = [draw.solution for draw in drawn if draw.solution.problem_id == problem_id and draw.solution.ends]
        own = [row.solution] if row.solution else {solution.chain_id: solution for solution in draws}.values()
        for solution in own if row.location not in rejected else ():
            yield (
                row,
                Chain(
                    problem=row.problem,
                    solution=solution,
                    root_prefix_id=root_id(problem_id, row.again),
                    prefix_ids=tuple(
                        prefix_id(solution, index, row.again) for index in range(1, len(solution.ends) + 1)
                    ),
                ),
            )


def promotion_faults(
    promotions: Iterable[Promotion], known: Collection[str], texts: Mapping[str, tuple[str, str, Sequence[int]]]
) -> Iterator[str]:
    """Promotions that no rollout wrote, or whose prefix no chain has, as texts. `known`: prefixes of the unit's chains.
    `texts`: rollout id -> its prefix, text and tokens."""
    for each in promotions:
        prefix_id, text, token_ids = texts.get(each.rollout_id, ("", "", ()))
        end = each.begin + len(each.token_ids)
        if each.prefix_id not in known or (not each.begin and prefix_id != each.prefix_id):
            yield f"promotion {each.chain_id} continues prefix {each.prefix_id}, which rollout {each.rollout_id} does not"
        elif each.text.strip() not in text or tuple(token_ids[each.begin : end]) != each.token_ids:
            yield f"promotion {each.chain_id} is not what rollout {each.rollout_id} wrote"
        for rollout in each.passed:
            if each.text.strip() not in texts.get(rollout, ("", "", ()))[1]:
                yield f"rollout {rollout} has not passed through promotion {each.chain_id}"


def sampled_prefixes(chains: Iterable[tuple[InputRow, Chain]]) -> dict[str, list[Measurement]]:
    """Prefix id -> the locations that need its value, for all prefixes measured by rollouts, bare problems included."""
    asked: dict[str, list[Measurement]] = defaultdict(list)
    for row, chain in chains:
        for index, prefix in enumerate(measured_prefixes(chain.shape)):
            asked[prefix].append((row.location, index))
    return dict(asked)


def id_faults(
    logged: Iterable[LoggedId],
    asked: Mapping[str, Sequence[Measurement]],
    too_long: Mapping[Measurement, int],
    plan: RolloutRange,
    spare: Collection[str] = (),
) -> Iterator[str]:
    """The faults of a unit's multiset of rollout ids, as texts; nothing if every planned rollout exists exactly once.

    Planned are the issues of every asked prefix, from 0 on without a gap, and as many as `plan` allows. A prefix without
    rollouts must be reported as too long, once for each location that needs it, unless `plan` allows prefixes without rollouts.
    `spare` prefixes may have rollouts: the ends of chains whose outcome was unknown when the rollouts were sampled.
    """
    issues: dict[str, list[int]] = defaultdict(list)
    for row in logged:
        if row.rollout_id != rollout_id(row.prefix_id, row.issue_index):
            yield f"rollout {row.rollout_id} is stored as issue {row.issue_index} of prefix {row.prefix_id}"
        issues[row.prefix_id].append(row.issue_index)
    unmeasured: Counter[Measurement] = Counter()
    for prefix, locations in asked.items():
        found = sorted(issues.pop(prefix, []))
        if not found:
            unmeasured.update(locations)
        else:
            due = range(min(max(found[-1] + 1, plan.least), plan.most))
            yield from _differences(prefix, Counter(found), Counter(due))
    for prefix, found in issues.items():
        kept = Counter(set(found)) if prefix in spare else Counter()
        yield from _differences(prefix, Counter(found), kept)
    for location, index in sorted({*unmeasured, *too_long}, key=lambda at: (at[0].file, at[0].line, at[1])):
        without, named = unmeasured[location, index], too_long.get((location, index), 0)
        if without < named or (plan.least and without != named):
            where = f"{location}, {index} steps"
            yield f"prefixes without rollouts at {where}: {without}, but rejects/ names {named}"


def missing_work_faults(
    chains: Sequence[ChainShape],
    trials: Mapping[str, Trials],
    too_long: Collection[str],
    rollouts: int,
    estimator: Estimator,
) -> Iterator[str]:
    """The rollouts that a whole unit still needs, as texts. None for an estimator whose decisions cannot be replayed from the
    log alone."""
    if not estimator.replayable:
        return
    for more in estimator.next_rollouts(trees_of(chains, too_long), trials, rollouts, None):
        for prefix, count in more.items():
            yield f"prefix {prefix} lacks {format_count(count, 'rollout')}"


def surplus_faults(trials: Mapping[str, Trials], estimator: Estimator) -> Iterator[str]:
    """Rollouts that were never planned because their prefix had enough correct ones, as texts."""
    for prefix, have in trials.items():
        issue = estimator.surplus_rollout(have)
        if issue is not None:
            yield f"rollout {rollout_id(prefix, issue)} was never planned: its prefix had enough correct rollouts"


def draw_faults(
    rows: Iterable[InputRow], drawn: Iterable[SampledSolution], rejected: Collection[RowLocation], solutions: int
) -> Iterator[str]:
    """The faults of the draws, as texts. A problem without a chain must have `solutions` draws, or none if its row is
    rejected."""
    found = Counter((draw.solution.problem_id, draw.draw) for draw in drawn)
    for row in rows:
        wanted = [(row.problem.problem_id, draw) for draw in range(solutions)] if row.solution is None else []
        counts = [found.pop(key, 0) for key in wanted]
        if counts != [1] * len(wanted) and (any(counts) or row.location not in rejected):
            yield f"problem {row.problem.problem_id} must have each of its draws 0 to {solutions - 1} once, but has {counts}"
    for problem_id, draw in found:
        yield f"draw {draw} of problem {problem_id} was never planned"


def totals_of(
    chains: Collection[Chain], outcomes: Collection[RolloutOutcome], drawn: Iterable[SampledSolution]
) -> Totals:
    """What can be counted in the log of a whole unit."""
    verdicts = Counter(outcome.verdict for outcome in outcomes if outcome.finish is not Finish.ABORT)
    finishes = Counter(outcome.finish for outcome in outcomes)
    return Totals(
        problems=count_problems(chains),
        chains=len(chains),
        promoted=sum(bool(chain.grown) for chain in chains),
        rollouts=len(outcomes),
        tokens=sum(outcome.n_tokens for outcome in outcomes),
        correct=verdicts[Verdict.CORRECT],
        incorrect=verdicts[Verdict.INCORRECT],
        no_answer=verdicts[Verdict.NO_ANSWER],
        ungraded=sum(verdicts[verdict] for verdict in UNGRADED),
        aborted=finishes[Finish.ABORT],
        truncated=finishes[Finish.LENGTH],
        engine_failed=finishes[Finish.ENGINE_FAILED],
        solution_tokens=sum(len(draw.solution.token_ids) for draw in drawn),
    )


def _differences(prefix: str, found: Counter[int], planned: Counter[int]) -> Iterator[str]:
    for issue in sorted({*found, *planned}):
        if found[issue] > 1:
            yield f"rollout {rollout_id(prefix, issue)} is stored {found[issue]} times"
        elif found[issue] and not planned[issue]:
            yield f"rollout {rollout_id(prefix, issue)} was never planned"
        elif not found[issue]:
            yield f"rollout {rollout_id(prefix, issue)} is missing"


def alike(left: Any, right: Any, *, abs_tol: float, rel_tol: float = 0.0) -> bool:
    """Whether both are equal, except for the last digits of numbers, which may differ between processors."""
    same = partial(alike, abs_tol=abs_tol, rel_tol=rel_tol)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=rel_tol, abs_tol=abs_tol)
    return bool(left == right)
