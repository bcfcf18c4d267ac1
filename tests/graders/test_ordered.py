"""Results come out in the order of input, failures reach the caller of `put`, and the cache keeps what was used last."""

import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cli import grade_lines
from pipeline.cli.grade_lines import InOrder
from pipeline.core.records import Grade, Verdict
from pipeline.graders import process_pool
from pipeline.graders.process_pool import VerdictCache

PATIENCE = 20.0


@given(st.lists(st.booleans(), max_size=20), st.randoms(use_true_random=False))
def test_the_order_is_that_of_putting(later: list[bool], chance: random.Random) -> None:
    out: list[int] = []
    in_order: InOrder[int] = InOrder(out.append)
    owed: list[tuple[int, Future[int]]] = []
    for number, is_later in enumerate(later):
        if is_later:
            owed.append((number, Future()))
            in_order.put_later(owed[-1][1], 1)
        else:
            in_order.put(number, 1)
    first_owed = owed[0][0] if owed else len(later)
    assert out == list(range(first_owed))
    chance.shuffle(owed)
    for number, future in owed:
        future.set_result(number)
    assert out == list(range(len(later)))
    in_order.finish()


def test_many_threads_finish_in_any_order() -> None:
    out: list[int] = []
    in_order: InOrder[int] = InOrder(out.append)

    def work(number: int) -> int:
        time.sleep((number * 7919 % 13) / 4000)
        return number

    with ThreadPoolExecutor(8) as threads:
        for number in range(300):
            if number % 3:
                in_order.put_later(threads.submit(work, number), 1)
            else:
                in_order.put(number, 1)
        in_order.finish()
    assert out == list(range(300))


@pytest.mark.parametrize(("limit", "value"), [("MAX_WAITING", 3), ("MAX_WAITING_BYTES", 30)])
def test_what_waits_is_bounded(limit: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grade_lines, limit, value)
    out: list[int] = []
    in_order: InOrder[int] = InOrder(out.append)
    oldest: Future[int] = Future()
    in_order.put_later(oldest, 10)
    in_order.put(1, 10)
    in_order.put(2, 10)
    assert out == []
    threading.Timer(0.05, oldest.set_result, [0]).start()
    in_order.put(3, 10)  # blocks until the oldest is known
    assert out == [0, 1, 2, 3]


def test_a_failure_is_raised_by_the_next_put_and_nothing_more_comes_out() -> None:
    out: list[int] = []

    def emit(result: int) -> None:
        if result == 1:
            raise BrokenPipeError
        out.append(result)

    in_order: InOrder[int] = InOrder(emit)
    in_order.put(0, 1)
    with pytest.raises(BrokenPipeError):
        in_order.put(1, 1)
    with pytest.raises(BrokenPipeError):
        in_order.put(2, 1)
    assert out == [0]


def test_a_failure_in_a_thread_is_raised_at_the_end() -> None:
    out: list[int] = []
    in_order: InOrder[int] = InOrder(out.append)
    failing: Future[int] = Future()
    in_order.put_later(failing, 1)
    in_order.put(1, 1)
    thread = threading.Thread(target=failing.set_exception, args=(ValueError("lost"),))
    thread.start()
    thread.join(PATIENCE)
    with pytest.raises(ValueError, match="lost"):
        in_order.finish()
    assert out == []


def test_what_is_used_stays_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "CACHE_ENTRIES", 2)
    grades = {key: Grade(verdict=Verdict.CORRECT, answer=key, ms=1.0) for key in "abc"}
    known: VerdictCache[str] = VerdictCache()
    known.keep("a", grades["a"])
    known.keep("b", grades["b"])
    assert known.get("a") is grades["a"]
    known.keep("c", grades["c"])
    assert [known.get(key) for key in "abc"] == [grades["a"], None, grades["c"]]
