"""`policy=openai` with servers that are busy, away or turn requests away: it waits for them, and not for ever."""

import asyncio
from collections import deque
from contextlib import AsyncExitStack

import pytest

from pipeline.core.errors import EngineDied
from pipeline.core.records import Completion
from pipeline.engines.openai import dispatch, wire
from tests.engines.openai_engines import answered_once, drained, engine, in_loop, requests, run, running
from tests.engines.served import CONTEXT, MODEL, Act, Server, served

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_openai")]


@pytest.mark.parametrize("act", [Act.BUSY, Act.OVERLOADED, Act.NO_KEY, Act.NO_ROUTE, Act.REDIRECT])
@in_loop
async def test_servers_that_only_turn_requests_away_are_dead_after_some_time(act: Act) -> None:
    async with running(server := Server(), patience_seconds=0.3) as made:
        server.misbehave([act] * 100_000)
        began = asyncio.get_running_loop().time()
        for _ in range(2):
            with pytest.raises(
                EngineDied, match=r"answered for 0\.3 s \(policy\.openai\.patience_seconds\): .* answered with"
            ):
                await drained(made, requests(5))
        assert asyncio.get_running_loop().time() - began > 0.3


@in_loop
async def test_servers_that_answer_now_and_then_are_alive() -> None:
    async with running(server := Server(retry_after="0.15"), connections=1, patience_seconds=0.4) as made:
        server.misbehave([Act.BUSY, Act.SERVE] * 4)
        assert len(await drained(made, requests(4))) == 4
        assert server.seen[Act.BUSY] == 4


@in_loop
async def test_while_a_request_is_under_way_nothing_is_given_up() -> None:
    async with running(server := Server(seconds=0.6), connections=2, patience_seconds=0.2) as made:
        server.misbehave([Act.SERVE, Act.NO_KEY])
        server.models_status = 401
        sampling = asyncio.create_task(drained(made, requests(2)))
        await asyncio.sleep(0.4)
        assert server.seen[Act.NO_KEY] == 1
        server.models_status = 200
        assert len(await sampling) == 2


@in_loop
async def test_one_of_two_servers_may_turn_all_away() -> None:
    async with running(bad := Server(), good := Server()) as made:
        bad.misbehave([Act.NO_KEY] * 100_000)
        asked = [*requests(8), *requests(8, "q")]
        assert answered_once(await drained(made, asked), asked)
        assert bad.seen[Act.NO_KEY] > 0
        assert good.seen[Act.SERVE] == 16


@in_loop
async def test_a_server_that_says_when_to_come_back_is_left_alone_until_then() -> None:
    async with running(server := Server(acts=deque([Act.BUSY]), retry_after="0.3")) as made:
        began = asyncio.get_running_loop().time()
        await drained(made, requests(1))
        assert asyncio.get_running_loop().time() - began >= 0.3
        assert len(server.bodies) == 2


@in_loop
async def test_a_server_that_is_away_is_asked_again_when_it_is_back() -> None:
    server = Server()
    async with AsyncExitStack() as first:
        await first.enter_async_context(served(server))
        port = int(server.url.split(":")[2].removesuffix("/v1"))
        made = engine(server, retries=1)
        await made.start()
    asked, done = requests(6), list[Completion]()
    sampling = asyncio.create_task(drained(made, asked, done))
    await asyncio.sleep(0.1)
    assert not done
    server.models = {"data": [{"id": "another"}]}
    async with served(server, port):
        await asyncio.sleep(0.1)
        assert not done
        server.models = {"data": [{"id": MODEL, "max_model_len": CONTEXT - 1}]}
        await asyncio.sleep(0.1)
        assert not done
        server.models = {"data": [{"id": MODEL, "max_model_len": CONTEXT}]}
        assert answered_once(await sampling, asked)
        await made.close()


@in_loop
async def test_of_several_servers_one_may_be_away_and_join_later() -> None:
    here, away = Server(), Server()
    async with AsyncExitStack() as first:
        await first.enter_async_context(served(away))
        port = int(away.url.split(":")[2].removesuffix("/v1"))
    async with served(here):
        made = engine(here, away, connections=1)
        await made.start()
        assert len(await drained(made, requests(3))) == 3
        async with served(away, port):
            here.seconds = 0.02
            number = 0
            while not away.bodies:
                number += 1
                await drained(made, [*requests(1, f"a{number}"), *requests(1, f"b{number}")])
        await made.close()


@in_loop
async def test_a_timer_that_fires_before_a_server_has_rested_leaves_nothing_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(server := Server(acts=deque([Act.BUSY] * 3), retry_after="0.01")) as made:
        assert made._dispatcher is not None
        queues = made._dispatcher.queues
        rest = queues.rest
        monkeypatch.setattr(queues, "rest", lambda at, now, seconds: rest(at, now, seconds + 0.01))
        asked = requests(20)
        assert answered_once(await drained(made, asked), asked)
        assert server.seen[Act.BUSY] == 3


def test_a_burst_of_answers_that_a_server_is_busy_counts_as_one_setback(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def noted(setbacks: int, chance: float) -> float:
        counted.append(setbacks)
        return wire.pause(setbacks, chance)

    async def work() -> None:
        async with running(server := Server(retry_after="")) as made:
            monkeypatch.setattr(wire, "FIRST_PAUSE_SECONDS", 0.3)
            monkeypatch.setattr(wire, "LONGEST_PAUSE_SECONDS", 0.3)
            monkeypatch.setattr(dispatch, "pause", noted)
            server.misbehave([Act.BUSY] * 8)
            asked = requests(20)
            assert answered_once(await drained(made, asked), asked)
            assert server.seen[Act.BUSY] == 8

    run(work())
    assert counted == [1] * 8
