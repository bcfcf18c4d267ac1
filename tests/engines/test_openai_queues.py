"""Each request is sent once, problems stay together, and no server is idle while a request waits."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.openai import queues as queues_module
from pipeline.engines.openai.queues import Queues

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "take", "take", "end", "fail", "rest", "down", "up", "wait"]), st.integers(0, 5)
    ),
    max_size=80,
)


@given(st.integers(1, 4), st.integers(1, 3), STEPS)
def test_every_request_goes_to_one_server_that_has_space(
    servers: int, slots: int, steps: list[tuple[str, int]]
) -> None:
    queues: Queues[int] = Queues(servers, slots)
    now, added = 0.0, 0
    waiting: set[int] = set()
    flying: list[tuple[int, int]] = []
    down: set[int] = set()
    rests: Counter[int] = Counter()
    for step, number in steps:
        at = number % servers
        if step == "add":
            queues.add(added, f"problem {number}")
            waiting.add(added)
            added += 1
        elif step == "take":
            taken = queues.take(now)
            up = [each for each in range(servers) if each not in down and rests[each] <= now]
            if taken is None:
                assert not waiting or all(sum(place == each for place, _ in flying) >= 1 for each in up)
                assert not waiting or not up or flying
            else:
                place, item = taken
                assert place in up
                waiting.remove(item)
                flying.append(taken)
                assert sum(each == place for each, _ in flying) <= slots
        elif step in ("end", "fail") and flying:
            place, item = flying.pop(number % len(flying))
            queues.release(place)
            if step == "fail":
                queues.add_again(item, f"problem {number}", failed_at=place)
                waiting.add(item)
            else:
                queues.record_answer(place)
        elif step == "rest":
            queues.rest(at, now, 2)
            rests[at] = max(rests[at], int(now) + 2)
        elif step == "down":
            assert queues.mark_down(at) == (at not in down)
            down.add(at)
        elif step == "up":
            queues.mark_up(at)
            down.discard(at)
        elif step == "wait":
            now += 1
        assert queues.in_flight == len(flying)
        assert queues.none_available(now) == all(each in down or rests[each] > now for each in range(servers))
    for each in range(servers):
        queues.mark_up(each)
    while flying:
        queues.release(flying.pop()[0])
    while (taken := queues.take(now + 100)) is not None:
        waiting.remove(taken[1])
        queues.release(taken[0])
    assert not waiting


def drained(queues: Queues[str]) -> list[tuple[int, str]]:
    found = []
    while (taken := queues.take(0)) is not None:
        found.append(taken)
    return found


def test_requests_of_a_server_go_out_in_their_order() -> None:
    queues: Queues[str] = Queues(1, 9)
    for name in ("a1", "a2", "b1", "a3"):
        queues.add(name, name[0])
    assert [name for _, name in drained(queues)] == ["a1", "a2", "b1", "a3"]


def test_a_server_without_work_takes_from_the_end_of_the_longest_queue() -> None:
    queues: Queues[str] = Queues(2, 1)
    for number in range(4):
        queues.add(f"a{number}", "a")
    assert drained(queues) == [(0, "a0"), (1, "a3")]


def test_what_waited_for_a_server_that_is_down_goes_elsewhere() -> None:
    queues: Queues[str] = Queues(2, 1)
    queues.add("a", "a")
    queues.mark_down(0)
    assert queues.take(0) == (1, "a")
    queues.add_again("a", "a", failed_at=1)
    queues.release(1)
    queues.mark_down(1)
    assert queues.take(0) is None
    queues.mark_up(0)
    assert queues.take(0) == (0, "a")


def test_what_waited_while_all_were_down_goes_out_in_order_where_one_is_up_again() -> None:
    queues: Queues[str] = Queues(2, 1)
    for name in ("a1", "b1", "b2"):
        queues.add(name, name[0])
    for at in (0, 1):
        queues.mark_down(at)
    queues.mark_up(0)
    order = []
    while (taken := queues.take(0)) is not None:
        order.append(taken)
        queues.release(0)
    assert order == [(0, "b1"), (0, "b2"), (0, "a1")]  # a1 had joined b when its own server went


def test_a_failed_request_goes_first_and_to_another_server() -> None:
    queues: Queues[str] = Queues(2, 2)
    queues.add("a", "a")
    queues.add("b", "a")
    assert queues.take(0) == (0, "a")
    queues.add_again("a", "a", failed_at=0)
    queues.release(0)
    assert (1, "a") in drained(queues)


def test_a_busy_server_gets_half_as_much_and_one_more_with_every_answer() -> None:
    queues: Queues[str] = Queues(1, 8)
    for number in range(40):
        queues.add(str(number), "a")

    def places() -> int:
        """The number of requests that are sent at once when no server rests any more."""
        count = 0
        while queues.take(99) is not None:
            count += 1
        for _ in range(count):
            queues.release(0)
        return count

    queues.rest(0, 0, 5)
    queues.rest(0, 1, 2)  # of the same batch: its slots are halved once, and the longest rest counts
    assert queues.take(4.9) is None
    assert places() == 4
    queues.record_answer(0)
    assert places() == 5
    for _ in range(20):
        queues.record_answer(0)
    assert places() == 8


def test_homes_of_problems_are_forgotten_at_some_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues_module, "REMEMBERED_PROBLEMS", 3)
    queues: Queues[str] = Queues(2, 100)
    for number in range(50):
        queues.add("x", str(number))
    assert len(queues._homes) == 3
