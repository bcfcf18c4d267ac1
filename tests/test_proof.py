"""`id_faults` and its relatives accept a plan that was carried out, and name every fault of one that was not."""

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.audit.invariants import (
    LoggedId,
    draw_faults,
    expected_chains,
    id_faults,
    sampled_prefixes,
    totals_of,
)
from pipeline.core.ids import rollout_id
from pipeline.core.records import (
    Finish,
    Grade,
    InputRow,
    Problem,
    RolloutOutcome,
    RowLocation,
    SampledSolution,
    Solution,
    Totals,
    Verdict,
)
from pipeline.estimators.base import RolloutRange
from tests import strategies as our
from tests.settings import estimator

PROBLEM = Problem(problem_id="p" * 20, text="?", golds=("1",))
PREFIXES = st.lists(our.hex_ids, min_size=1, max_size=5, unique=True)
TARGETS = st.integers(1, 6)


def place(line: int) -> RowLocation:
    return RowLocation(file="f", line=line)


def logged(prefix: str, issue: int) -> LoggedId:
    return LoggedId(rollout_id=rollout_id(prefix, issue), prefix_id=prefix, issue_index=issue)


def all_of(rollouts: int) -> RolloutRange:
    return estimator("fixed").rollout_range(rollouts)


def plan(prefixes: list[str], target: int) -> list[LoggedId]:
    return [logged(prefix, issue) for prefix in prefixes for issue in range(target)]


def asked(prefixes: list[str]) -> dict[str, list[tuple[RowLocation, int]]]:
    return {prefix: [(place(line), 1)] for line, prefix in enumerate(prefixes)}


@given(PREFIXES, TARGETS, st.randoms(use_true_random=False))
def test_a_plan_carried_out_in_any_order_has_no_fault(prefixes: list[str], target: int, random: Random) -> None:
    rows = plan(prefixes, target)
    random.shuffle(rows)
    assert list(id_faults(rows, asked(prefixes), {}, all_of(target))) == []


@given(PREFIXES, TARGETS, st.data())
def test_each_fault_is_named_by_its_rollout(prefixes: list[str], target: int, data: st.DataObject) -> None:
    rows = plan(prefixes, target)
    row = data.draw(st.sampled_from(rows))
    stranger = logged(data.draw(our.hex_ids.filter(lambda prefix: prefix not in prefixes)), 0)
    beyond = logged(row.prefix_id, data.draw(st.integers(target, 99)))
    wrong = LoggedId(rollout_id=beyond.rollout_id, prefix_id=row.prefix_id, issue_index=row.issue_index)
    others = [each for each in rows if each != row]
    cases = [
        ([*rows, row], f"rollout {row.rollout_id} is stored 2 times"),
        ([*rows, stranger], f"rollout {stranger.rollout_id} was never planned"),
        ([*rows, beyond], f"rollout {beyond.rollout_id} was never planned"),
        (
            [*others, wrong],
            f"rollout {wrong.rollout_id} is stored as issue {row.issue_index} of prefix {row.prefix_id}",
        ),
    ]
    if target > 1:
        cases.append((others, f"rollout {row.rollout_id} is missing"))
    for changed, fault in cases:
        assert list(id_faults(changed, asked(prefixes), {}, all_of(target))) == [fault]


@given(PREFIXES, TARGETS, st.data())
def test_prefixes_without_rollouts_are_those_that_rejects_name(
    prefixes: list[str], target: int, data: st.DataObject
) -> None:
    wanted = asked(prefixes)
    left_out = data.draw(st.sets(st.sampled_from(prefixes)))
    rows = plan([prefix for prefix in prefixes if prefix not in left_out], target)
    too_long = {wanted[prefix][0]: 1 for prefix in left_out}
    assert list(id_faults(rows, wanted, too_long, all_of(target))) == []
    for prefix in left_out:
        at = wanted[prefix][0]
        fewer = {key: number for key, number in too_long.items() if key != at}
        (fault,) = id_faults(rows, wanted, fewer, all_of(target))
        assert fault == f"prefixes without rollouts at f:{at[0].line}, 1 steps: 1, but rejects/ names 0"
    for prefix in set(prefixes) - left_out:
        (fault,) = id_faults(rows, wanted, {**too_long, wanted[prefix][0]: 1}, all_of(target))
        assert "steps: 0, but rejects/ names" in fault


def test_ends_of_chains_may_have_rollouts_from_when_their_outcome_was_not_known() -> None:
    wanted = asked(["a" * 20])
    rows = [*plan(["a" * 20], 3), logged("b" * 20, 1)]
    assert list(id_faults(rows, wanted, {}, all_of(3), spare={"b" * 20})) == []
    (fault,) = id_faults([*rows, rows[-1]], wanted, {}, all_of(3), spare={"b" * 20})
    assert fault.endswith("is stored 2 times")


def row(line: int, steps: int) -> InputRow:
    text = "".join(f"{step}\n" for step in range(steps))
    ends = tuple(2 * step for step in range(1, steps + 1))
    given_chain = Solution(chain_id=f"{line:020x}", problem_id=PROBLEM.problem_id, source_id=None, text=text, ends=ends)
    return InputRow(location=place(line), source_id=None, problem=PROBLEM, solution=given_chain if steps else None)


def drawn(draw: int, tokens: tuple[int, ...], chain_id: str) -> SampledSolution:
    ends = (1,) if tokens else ()
    solution = Solution(
        chain_id=chain_id, problem_id=PROBLEM.problem_id, source_id=None, text="x" * len(ends), ends=ends,
        token_ids=tokens, token_ends=(len(tokens),) if tokens else (),
    )  # fmt: skip
    grade = Grade(verdict=Verdict.CORRECT, answer="1", ms=0.0)
    return SampledSolution(solution=solution, draw=draw, finish=Finish.STOP, grade=grade)


DRAWS = [drawn(0, (1,), "a"), drawn(1, (2,), "b"), drawn(2, (1,), "a"), drawn(3, (), "c")]


def test_chains_are_those_of_rows_and_the_distinct_draws() -> None:
    given_rows = [row(1, 2), row(2, 3), row(3, 0)]
    found = [chain.solution.chain_id for _, chain in expected_chains(given_rows, DRAWS, {place(2)})]
    assert found == [f"{1:020x}", "a", "b"]
    assert list(expected_chains([row(3, 0)], DRAWS, {place(3)})) == []


def test_prefixes_are_asked_for_by_every_chain_that_has_them() -> None:
    (one, first), (other, second) = expected_chains([row(1, 2), row(2, 3)], [], ())
    wanted = sampled_prefixes([(one, replace(first, outcome=True)), (other, second)])
    assert first.prefix_ids == second.prefix_ids[:2]
    assert wanted == {
        first.root_prefix_id: [(place(1), 0), (place(2), 0)],
        first.prefix_ids[0]: [(place(1), 1), (place(2), 1)],
        second.prefix_ids[1]: [(place(2), 2)],
        second.prefix_ids[2]: [(place(2), 3)],
    }


def test_every_bare_problem_has_its_draws_once() -> None:
    bare = [row(3, 0)]
    assert list(draw_faults(bare, DRAWS, (), 4)) == []
    assert list(draw_faults(bare, [], {place(3)}, 4)) == []
    assert list(draw_faults(bare, [], (), 4)) == [
        f"problem {PROBLEM.problem_id} must have each of its draws 0 to 3 once, but has [0, 0, 0, 0]"
    ]
    assert len(list(draw_faults(bare, DRAWS[1:], {place(3)}, 4))) == 1
    assert len(list(draw_faults(bare, [*DRAWS, DRAWS[0]], (), 4))) == 1
    assert list(draw_faults(bare, DRAWS, (), 3)) == [f"draw 3 of problem {PROBLEM.problem_id} was never planned"]
    assert len(list(draw_faults([row(1, 2)], DRAWS, (), 4))) == 4


verdicts = st.sampled_from(Verdict)
outcomes = st.lists(
    st.builds(
        RolloutOutcome,
        prefix_id=our.hex_ids,
        issue_index=st.integers(0, 9),
        round=st.integers(0, 9),
        reached_prefix_id=st.none(),
        finish=st.sampled_from(Finish),
        n_tokens=st.integers(0, 99),
        verdict=verdicts,
    )
)


@given(outcomes, st.integers(0, 3))
def test_totals_add_up(found: list[RolloutOutcome], rejected: int) -> None:
    chains = [(at, replace(chain, outcome=True)) for at, chain in expected_chains([row(1, 2), row(2, 3)], [], ())]
    wanted = sampled_prefixes(chains)
    totals = totals_of([chain for _, chain in chains], wanted, found, DRAWS, rejected)
    assert totals.rollouts == len(found)
    assert totals.rollouts == totals.correct + totals.incorrect + totals.no_answer + totals.ungraded + totals.aborted
    assert totals.tokens == sum(outcome.n_tokens for outcome in found)
    assert (totals.used, totals.rejected) == (-rejected, rejected)
    assert (totals.problems, totals.chains, totals.prefixes, totals.solution_tokens) == (1, 2, 3, 3)
    assert totals.too_long == len(wanted.keys() - {outcome.prefix_id for outcome in found})
    assert totals_of([], {}, [], [], 0) == Totals()
