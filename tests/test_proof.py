"""`id_faults` and its relatives accept a plan that was carried out, and name every fault of one that was not."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.audit.invariants import LoggedId, id_faults
from pipeline.core.ids import rollout_id
from pipeline.core.records import RowLocation
from pipeline.estimators.base import RolloutRange
from tests import strategies as our
from tests.settings import estimator

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
