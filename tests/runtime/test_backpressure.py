"""Decisions and units wait while the engine has enough requests; units also wait for decisions and for each other."""

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.runtime.sampling import HIGH, LOW, Backpressure


async def given_way() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@given(st.integers(1, 50), st.lists(st.integers(1, 60), max_size=40), st.randoms(use_true_random=False))
def test_an_engine_is_hungry_from_low_until_high(capacity: int, asked: list[int], random: Random) -> None:
    backpressure, outstanding, wants_requests = Backpressure(capacity), 0, True
    for requests in asked:
        backpressure.ask(requests)
        outstanding += requests
        wants_requests = wants_requests and outstanding - capacity < HIGH * capacity
        assert backpressure.wants_requests is wants_requests
        answered = random.randint(0, outstanding)
        backpressure.answer(answered)
        outstanding -= answered
        wants_requests = wants_requests or (answered > 0 and outstanding - capacity < LOW * capacity)
        assert backpressure.wants_requests is (wants_requests or outstanding - capacity < LOW * capacity)
        wants_requests = backpressure.wants_requests


async def test_nobody_waits_for_an_engine_without_work() -> None:
    backpressure = Backpressure(capacity=4)
    await backpressure.turn()
    backpressure.end_turn()
    await backpressure.wait()


@pytest.mark.parametrize("what", ["turn", "wait"])
async def test_who_waits_for_hunger_is_woken_by_it(what: str) -> None:
    backpressure = Backpressure(capacity=10)
    backpressure.ask(100)
    waiting = asyncio.create_task(backpressure.turn() if what == "turn" else backpressure.wait())
    backpressure.answer(100 - 10 - int(LOW * 10))
    await given_way()
    assert not waiting.done()
    backpressure.answer(1)
    await asyncio.wait_for(waiting, 5)


async def test_a_unit_waits_until_the_one_before_has_asked() -> None:
    backpressure = Backpressure(capacity=10)
    backpressure.begin("first")
    waiting = asyncio.create_task(backpressure.wait())
    await given_way()
    assert not waiting.done()
    backpressure.ask(1)
    backpressure.ready("first")
    await asyncio.wait_for(waiting, 5)


async def test_what_units_have_to_ask_for_comes_before_another_unit() -> None:
    backpressure = Backpressure(capacity=10)
    backpressure.ask(100)
    another = asyncio.create_task(backpressure.wait())
    turns = [asyncio.create_task(backpressure.turn()) for _ in range(3)]

    async def decide(turn: "asyncio.Task[None]") -> None:
        await turn
        assert not another.done()
        backpressure.ask(15)
        backpressure.end_turn()

    deciding = [asyncio.create_task(decide(turn)) for turn in turns]
    await given_way()
    backpressure.answer(90)
    await asyncio.wait_for(asyncio.gather(*deciding), 5)
    await given_way()
    assert not another.done()
    backpressure.answer(55)
    await asyncio.wait_for(another, 5)


async def test_a_unit_that_gives_up_its_turn_holds_up_nobody() -> None:
    backpressure = Backpressure(capacity=1)
    backpressure.ask(100)
    turn = asyncio.create_task(backpressure.turn())
    await given_way()
    turn.cancel()
    backpressure.answer(100)
    await asyncio.wait_for(backpressure.wait(), 5)


async def test_a_call_that_overtakes_the_unit_before_it_waits_for_that_one() -> None:
    backpressure = Backpressure(capacity=10)
    waiting = asyncio.create_task(backpressure.wait(begun=1))
    await given_way()
    assert not waiting.done()
    backpressure.begin("unit")
    await given_way()
    assert not waiting.done()
    backpressure.ready("unit")
    await asyncio.wait_for(waiting, 5)
