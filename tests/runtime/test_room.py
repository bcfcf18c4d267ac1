"""Decisions and units wait while the engine has plenty; units also for decisions, and for each other."""

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.runtime.sampling import HIGH, LOW, Room


async def given_way() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@given(st.integers(1, 50), st.lists(st.integers(1, 60), max_size=40), st.randoms(use_true_random=False))
def test_an_engine_is_hungry_from_low_until_high(capacity: int, asked: list[int], random: Random) -> None:
    room, outstanding, hungry = Room(capacity), 0, True
    for requests in asked:
        room.ask(requests)
        outstanding += requests
        hungry = hungry and outstanding - capacity < HIGH * capacity
        assert room.hungry is hungry
        answered = random.randint(0, outstanding)
        room.answer(answered)
        outstanding -= answered
        hungry = hungry or (answered > 0 and outstanding - capacity < LOW * capacity)
        assert room.hungry is (hungry or outstanding - capacity < LOW * capacity)
        hungry = room.hungry


def test_nobody_waits_for_an_engine_without_work() -> None:
    async def run() -> None:
        room = Room(capacity=4)
        await room.turn()
        room.decided()
        await room.wait()

    asyncio.run(run())


@pytest.mark.parametrize("what", ["turn", "wait"])
def test_who_waits_for_hunger_is_woken_by_it(what: str) -> None:
    async def run() -> None:
        room = Room(capacity=10)
        room.ask(100)
        waiting = asyncio.create_task(room.turn() if what == "turn" else room.wait())
        room.answer(100 - 10 - int(LOW * 10))
        await given_way()
        assert not waiting.done()
        room.answer(1)
        await asyncio.wait_for(waiting, 5)

    asyncio.run(run())


def test_a_unit_waits_until_the_one_before_has_asked() -> None:
    async def run() -> None:
        room = Room(capacity=10)
        room.begin("first")
        waiting = asyncio.create_task(room.wait())
        await given_way()
        assert not waiting.done()
        room.ask(1)
        room.ready("first")
        await asyncio.wait_for(waiting, 5)

    asyncio.run(run())


def test_what_units_have_to_ask_for_comes_before_another_unit() -> None:
    async def run() -> None:
        room = Room(capacity=10)
        room.ask(100)
        another = asyncio.create_task(room.wait())
        turns = [asyncio.create_task(room.turn()) for _ in range(3)]

        async def decide(turn: "asyncio.Task[None]") -> None:
            await turn
            assert not another.done()
            room.ask(15)
            room.decided()

        deciding = [asyncio.create_task(decide(turn)) for turn in turns]
        await given_way()
        room.answer(90)
        await asyncio.wait_for(asyncio.gather(*deciding), 5)
        await given_way()
        assert not another.done()
        room.answer(55)
        await asyncio.wait_for(another, 5)

    asyncio.run(run())


def test_a_unit_that_gives_up_its_turn_holds_up_nobody() -> None:
    async def run() -> None:
        room = Room(capacity=1)
        room.ask(100)
        turn = asyncio.create_task(room.turn())
        await given_way()
        turn.cancel()
        room.answer(100)
        await asyncio.wait_for(room.wait(), 5)

    asyncio.run(run())


def test_a_call_that_overtakes_the_unit_before_it_waits_for_that_one() -> None:
    async def run() -> None:
        room = Room(capacity=10)
        waiting = asyncio.create_task(room.wait(begun=1))
        await given_way()
        assert not waiting.done()
        room.begin("unit")
        await given_way()
        assert not waiting.done()
        room.ready("unit")
        await asyncio.wait_for(waiting, 5)

    asyncio.run(run())
