"""Work is counted from vLLM's statistics of each step, with any number of arguments; empty slots by the clock."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.vllm.meter import SlotMeter, TokenMeter, leave_prometheus_out


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


# vLLM's IterationStats and SchedulerStats, as far as they are read.
STEPS = st.builds(
    SimpleNamespace,
    num_generation_tokens=st.integers(0, 512),
    prompt_token_stats=st.builds(SimpleNamespace, computed=st.integers(0, 99), total=st.integers(99, 999)),
)


def queue(waiting: int, skipped: int = 0) -> SimpleNamespace:
    return SimpleNamespace(num_waiting_reqs=waiting, num_skipped_waiting_reqs=skipped)


@given(st.lists(st.none() | STEPS))
def test_the_tokens_of_all_steps_add_up(steps: list[Any]) -> None:
    meter = TokenMeter(SlotMeter())
    logger = meter("vllm_config", 0)
    for number, step in enumerate(steps):
        if number % 2:
            logger.record(None, step, mm_cache_stats=None, engine_idx=0)
        else:
            logger.record(queue(3), step, None, 0, news="of a later version")
    shown = [step for step in steps if step]
    assert meter.work.generated == sum(step.num_generation_tokens for step in shown)
    assert meter.work.steps == sum(step.num_generation_tokens > 0 for step in shown)
    assert meter.work.prompt == sum(step.prompt_token_stats.total for step in shown)
    assert meter.work.prefilled == sum(step.prompt_token_stats.computed for step in shown)


def test_places_stand_empty_until_requests_come_and_while_they_go() -> None:
    clock = Clock()
    slots = SlotMeter(clock)
    clock.now += 50  # loading: there are no slots yet
    slots.open(4)
    clock.now += 1
    assert slots.unfilled_seconds == 1
    slots.take(3, waiting=0)
    clock.now += 2
    assert slots.unfilled_seconds == 1 + 2 * 0.25
    slots.take(5, waiting=7)
    clock.now += 10
    slots.take(4, waiting=0)
    clock.now += 10
    assert slots.unfilled_seconds == 1.5
    slots.take(0, waiting=0)
    clock.now += 3
    assert slots.unfilled_seconds == 4.5


# Older versions do not count postponed requests separately.
@pytest.mark.parametrize("full", [queue(2), queue(0, 2), SimpleNamespace(num_waiting_reqs=2)])
def test_a_cache_without_space_leaves_no_place_empty(full: object) -> None:
    """Half of the slots have no running request, but no request could have run there."""
    clock = Clock()
    slots = SlotMeter(clock)
    meter = TokenMeter(slots)
    slots.open(8)
    slots.take(4, waiting=0)
    meter.record(full, None)
    clock.now += 6
    assert slots.unfilled_seconds == 0
    meter.record(queue(0), None)
    meter.record(None, None)
    clock.now += 6
    assert slots.unfilled_seconds == 3
    meter.record(full, None)
    slots.take(0, waiting=0)
    clock.now += 1
    assert slots.unfilled_seconds == 4


EVENTS = st.lists(
    st.tuples(
        st.floats(0, 60),
        st.tuples(st.just("take"), st.integers(0, 12), st.integers(0, 3))
        | st.tuples(st.just("hold"), st.integers(0, 3)),
    ),
    max_size=20,
)


@given(EVENTS, st.integers(1, 8), st.integers(0, 19))
def test_places_that_stand_empty_add_up_whenever_they_are_read(events: list[Any], capacity: int, read_at: int) -> None:
    clock = Clock()
    slots = SlotMeter(clock)
    slots.open(capacity)
    expected, taken, waiting, held, last = 0.0, 0, 0, 0, 0.0
    for number, (seconds, (kind, *counts)) in enumerate(events):
        clock.now += seconds
        full = waiting > 0 or (held > 0 and taken > 0)
        expected += 0 if full else seconds * max(0, capacity - taken) / capacity
        if number == read_at:
            assert slots.unfilled_seconds == pytest.approx(expected)
        if kind == "take":
            taken, waiting = counts
            slots.take(taken, waiting)
        else:
            (held,) = counts
            slots.hold(held)
        assert slots.unfilled_seconds >= last
        last = slots.unfilled_seconds
    assert slots.unfilled_seconds == pytest.approx(expected)


class PrometheusStatLogger:
    """Has the name of vLLM's class."""


def test_only_the_prometheus_logger_goes() -> None:
    manager = SimpleNamespace(stat_loggers=[TokenMeter(SlotMeter()), PrometheusStatLogger()])
    leave_prometheus_out(SimpleNamespace(logger_manager=manager))
    assert [type(logger) for logger in manager.stat_loggers] == [TokenMeter]
    leave_prometheus_out(object())
