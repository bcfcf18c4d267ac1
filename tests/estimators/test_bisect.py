"""The search for the first error: exact where V drops to 0 and stays there, otherwise as fragile as documented."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import LabelRule
from pipeline.core.records import ChainShape, Counts, Origin, Trials
from pipeline.estimators import first_success
from pipeline.estimators.bisect import labels, rollouts_owed, values
from pipeline.estimators.settings import BisectConfig
from pipeline.estimators.tree import counts_of
from tests.settings import estimator_settings

CONFIG = estimator_settings("bisect")
N = 8


def chain(n_steps: int, outcome: bool | None) -> ChainShape:
    return ChainShape(prefix_ids=tuple(str(index) for index in range(n_steps + 1)), outcome=outcome)


def of(outcomes: tuple[bool | None, ...]) -> Trials:
    return Trials(outcomes=outcomes, counts=counts_of(outcomes))


def searched(
    shape: ChainShape, outcome: Callable[[int], bool | None], config: BisectConfig = CONFIG
) -> dict[str, Trials]:
    """The trials of a finished search in which all rollouts of a prefix have the same outcome."""
    trials: dict[str, Trials] = {}
    while more := rollouts_owed(shape, trials, N, config):
        ((prefix, rollouts),) = more.items()
        before = trials[prefix].outcomes if prefix in trials else ()
        trials[prefix] = of((*before, *(outcome(int(prefix)),) * rollouts))
    return trials


def until(first_error: int, n_steps: int) -> tuple[int, ...]:
    return tuple(int(step < first_error) for step in range(1, n_steps + 1))


@given(st.integers(1, 70), st.sampled_from([False, None]), st.integers(1, 10), st.data())
def test_the_error_is_found_where_there_is_no_way_back(
    n_steps: int, outcome: bool | None, batch: int, data: st.DataObject
) -> None:
    first_error = data.draw(st.integers(1, n_steps if outcome is False else n_steps + 1))
    shape = chain(n_steps, outcome)
    config = estimator_settings("bisect", batch=batch)
    trials = searched(shape, lambda index: index < first_error, config)
    assert labels(shape, trials) == until(first_error, n_steps)
    assert len(trials) <= ceil(log2(n_steps + 1))
    for prefix, found in trials.items():
        assert found.outcomes == ((True,) * min(batch, N) if int(prefix) < first_error else (False,) * N)


@pytest.mark.parametrize("outcome", [False, None])
def test_five_hundred_steps_take_nine_probes(outcome: bool | None) -> None:
    shape = chain(500, outcome)
    trials = searched(shape, lambda index: index < 123)
    assert labels(shape, trials) == until(123, 500)
    assert len(trials) <= 9


def test_a_chain_of_one_step() -> None:
    assert labels(chain(1, False), {}) == (0,)
    assert rollouts_owed(chain(1, False), {}, N, CONFIG) == {}
    assert rollouts_owed(chain(1, None), {}, N, CONFIG) == {"1": 1}
    assert labels(chain(1, None), searched(chain(1, None), lambda _: True)) == (1,)
    assert labels(chain(1, None), searched(chain(1, None), lambda _: False)) == (0,)


@pytest.mark.parametrize("n_steps", [1, 2, 9])
def test_a_chain_with_the_right_answer_is_taken_as_right(n_steps: int) -> None:
    shape = chain(n_steps, True)
    assert rollouts_owed(shape, {}, N, CONFIG) == {}
    assert labels(shape, {}) == (1,) * n_steps
    known = values(shape, {}, CONFIG)
    assert [value.origin for value in known] == [Origin.IMPLIED] * n_steps + [Origin.TERMINAL]


@pytest.mark.parametrize("n_steps", [1, 2, 9])
def test_a_policy_that_is_always_or_never_right(n_steps: int) -> None:
    """The root is not a step: where the problem was never solved, the first step is the first error."""
    assert labels(chain(n_steps, None), searched(chain(n_steps, None), lambda _: True)) == (1,) * n_steps
    assert labels(chain(n_steps, False), searched(chain(n_steps, False), lambda _: True)) == until(n_steps, n_steps)
    for outcome in (False, None):
        shape = chain(n_steps, outcome)
        log = {prefix: of((False,) * N) for prefix in shape.prefix_ids}
        assert labels(shape, searched(shape, lambda _: False)) == (0,) * n_steps
        assert labels(shape, log) == (0,) * n_steps


def test_a_search_under_way_names_one_probe_and_labels_nothing() -> None:
    shape = chain(7, None)
    assert rollouts_owed(shape, {}, N, CONFIG) == {"4": 1}
    assert rollouts_owed(shape, {"4": of((False, None))}, N, CONFIG) == {"4": 1}
    assert rollouts_owed(shape, {"4": of((False, True))}, N, CONFIG) == {"6": 1}
    assert rollouts_owed(shape, {"4": of((False,) * 8)}, N, CONFIG) == {"2": 1}
    assert rollouts_owed(shape, {"4": of((False,) * 8)}, 9, CONFIG) == {"4": 1}
    begun = {"4": of((True,))}
    assert labels(shape, begun) == (None,) * 7
    assert [value.origin for value in values(shape, begun, CONFIG)].count(Origin.UNMEASURED) == 7


@pytest.mark.parametrize(("outcome", "probes"), [(False, ["3", "4"]), (None, ["3", "5"])])
def test_a_probe_without_a_grade_leaves_the_chain_uncertain(outcome: bool | None, probes: list[str]) -> None:
    shape = chain(6, outcome)
    trials = searched(shape, lambda index: True if index < 4 else None)
    assert list(trials) == probes
    assert trials[probes[-1]] == of((None,) * N)
    assert labels(shape, trials) == (None,) * 6


@given(st.integers(1, 20), st.sampled_from([False, None]), st.data())
def test_ungraded_rollouts_are_never_failures(n_steps: int, outcome: bool | None, data: st.DataObject) -> None:
    first_error = data.draw(st.integers(1, n_steps if outcome is False else n_steps + 1))
    shape = chain(n_steps, outcome)
    log = {
        str(index): of((None,) * data.draw(st.integers(0, 4)) + (index < first_error, None))
        for index in range(n_steps + 1)
    }
    assert labels(shape, log) == until(first_error, n_steps)


def test_values_are_measured_where_there_are_rollouts_and_implied_elsewhere() -> None:
    shape = chain(7, False)
    trials = searched(shape, lambda index: index < 4)
    known = values(shape, trials, CONFIG)
    assert list(trials) == ["3", "5", "4"]
    *sampled, end = known
    for prefix, value in zip(shape.prefix_ids[:-1], sampled, strict=True):
        if prefix in trials:
            assert value == first_success.measured_value(trials[prefix], CONFIG)
        else:
            assert value.origin is Origin.IMPLIED
            assert value.counts == Counts()
            assert (value.unbiased_value, value.value, value.low, value.p_above) == (None,) * 4
    assert (end.origin, end.value) == (Origin.TERMINAL, 0)


@pytest.mark.parametrize(
    ("recovery", "rollouts", "exact"),
    [(0.0, 8, (99.9, 99.9, 99.8)), (0.05, 8, (57.5, 47.8, 39.7)), (0.05, 16, (37.3, 26.9, 19.4))],
)
def test_a_policy_that_recovers_misleads_it_and_the_more_the_more_it_samples(
    recovery: float, rollouts: int, exact: tuple[float, float, float]
) -> None:
    for n_steps, percent in zip((8, 16, 32), exact, strict=True):
        found = [share_found(n_steps, error, rollouts, recovery) for error in range(1, n_steps + 1)]
        assert 100 * sum(found) / n_steps == pytest.approx(percent, abs=0.05)


def share_found(n_steps: int, first_error: int, rollouts: int, recovery: float) -> float:
    """P(the error is found exactly) over all paths of the search. V = 0.6 before the error and `recovery` after it."""
    shape = chain(n_steps, False)

    def share(trials: Mapping[str, Trials]) -> float:
        more = rollouts_owed(shape, trials, rollouts, CONFIG)
        if not more:
            return float(labels(shape, trials) == until(first_error, n_steps))
        (prefix,) = more
        fails: float = (1 - (0.6 if int(prefix) < first_error else recovery)) ** rollouts
        solved = share({**trials, prefix: of((True,))})
        return (1 - fails) * solved + fails * share({**trials, prefix: of((False,) * rollouts)})

    return share({})


@pytest.mark.parametrize("rule", [rule for rule in LabelRule if rule is not LabelRule.any])
def test_no_rule_but_any_goes_with_a_search(rule: LabelRule) -> None:
    with pytest.raises(ValueError, match=f"rule={rule.value} needs the values of all steps"):
        estimator_settings("bisect", rule=rule)


def test_a_probe_stops_at_one_success() -> None:
    with pytest.raises(ValueError, match="successes=2 is out of range"):
        estimator_settings("bisect", successes=2)


@given(st.lists(st.sampled_from([None, True, False]), min_size=2, max_size=12))
def test_a_promoted_chain_has_the_labels_that_its_measured_prefixes_decide(found: list[bool | None]) -> None:
    shape = replace(chain(len(found) - 1, None), grown=True)
    trials = {str(place): of((verdict,) * N) for place, verdict in enumerate(found) if verdict is not None}
    marks = labels(shape, trials)
    last_right = max((place for place, verdict in enumerate(found) if verdict), default=0)
    for place, label in enumerate(marks, start=1):
        later_wrong = False in found[last_right + 1 : place + 1]
        assert label == (1 if place <= last_right else 0 if later_wrong else None)
    root, *steps = values(shape, trials, CONFIG)
    assert (root.origin is Origin.UNMEASURED) == (found[0] is None and set(marks) == {None})
    for step, label, verdict in zip(steps, marks, found[1:], strict=True):
        between = Origin.UNMEASURED if label is None else Origin.IMPLIED
        assert step.origin is (between if verdict is None else Origin.MEASURED)
