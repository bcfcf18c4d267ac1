"""A worker asks for another unit when its engine would run short, and never while one is being prepared."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.run.room import BACKLOG, Room


@given(st.integers(1, 50), st.lists(st.integers(1, 40), max_size=30), st.randoms(use_true_random=False))
def test_there_is_room_exactly_while_too_little_waits_and_nothing_is_prepared(
    capacity: int, units: list[int], random: object
) -> None:
    room, outstanding = Room(capacity), 0
    for number, requests in enumerate(units):
        room.begin(f"unit{number}")
        assert not room.there
        room.ask(requests)
        outstanding += requests
        room.ready(f"unit{number}")
        answered = random.randint(0, outstanding)  # type: ignore[attr-defined]
        room.answer(answered)
        outstanding -= answered
        assert room.there is (outstanding - capacity < BACKLOG * capacity)


@pytest.mark.parametrize("release", ["answer", "ready"])
def test_who_waits_for_room_is_woken_when_there_is_some(release: str) -> None:
    async def run() -> None:
        room = Room(capacity=2)
        if release == "ready":
            room.begin("unit")
        else:
            room.ask(100)
        waiting = asyncio.create_task(room.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        if release == "ready":
            room.ready("unit")
        else:
            room.answer(90)
            await asyncio.sleep(0)
            assert not waiting.done()
            room.answer(10)
        await asyncio.wait_for(waiting, 5)

    asyncio.run(run())
