"""`policy=openai` with servers that answer: tokens, work, the assignment of requests, and requests that are given up."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from pipeline.config.label import SamplingConfig
from pipeline.core.progress import Load
from pipeline.core.records import Finish
from tests.engines.openai_engines import TEXT, answered_once, drained, in_loop, requests, running
from tests.engines.served import CONTEXT, MODEL, Act, Server

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_openai")]


@in_loop
async def test_completions_come_with_their_tokens_and_are_counted() -> None:
    async with running(server := Server()) as made:
        asked = requests(20)
        done = await drained(made, asked, keep_tokens=True)
        assert answered_once(done, asked)
        assert {(each.text, each.finish, each.n_tokens, each.token_ids) for each in done} == {
            (TEXT, Finish.STOP, 5, tuple(TEXT.encode()))
        }
        assert set(server.prompts) == {asked[0].prefix.prompt_ids}
        assert server.most_at_once <= 8 == made.capacity
        assert made.max_model_len == CONTEXT
        assert made.policy == f"{MODEL}:openai"
        assert made.load == Load()
        first = made.work
        assert (first.generated, first.prompt, first.prefilled) == (100, 60, 0)
        assert first.attended == 20 * (5 * 3 + 10)
        await asyncio.sleep(0.01)
        assert made.work.unfilled_seconds > first.unfilled_seconds
        assert not any("Authorization" in headers for headers in server.headers)


@pytest.mark.parametrize("reports_usage", [True, False])
@in_loop
async def test_without_ids_tokens_are_those_of_the_text(reports_usage: bool) -> None:
    async with running(Server(reports_ids=False, reports_usage=reports_usage)) as made:
        (plain,) = await drained(made, requests(1))
        (kept,) = await drained(made, requests(1), keep_tokens=True)
        assert (plain.n_tokens, plain.token_ids) == (5, ())
        assert (kept.n_tokens, kept.token_ids) == (5, tuple(TEXT.encode()))
    async with running(Server(reports_ids=False, reports_usage=reports_usage), choices=3) as made:
        assert {each.n_tokens for each in await drained(made, requests(3))} == {5}


@in_loop
async def test_adjacent_requests_of_a_prefix_are_asked_for_together() -> None:
    async with running(server := Server(), choices=4) as made:
        asked = [*requests(6), *requests(2, "q")]
        assert answered_once(await drained(made, asked), asked)
        assert [body["n"] for body in server.bodies] == [4, 2, 2]
        assert made.capacity == 32
    async with running(server := Server(), choices=4, sampling=SamplingConfig(temperature=0, max_tokens=16)) as made:
        await drained(made, requests(2))
        assert [body["n"] for body in server.bodies] == [1, 1]


@in_loop
async def test_a_completion_ends_at_its_requests_stop_text_or_limit_and_only_like_requests_go_together() -> None:
    ways: list[dict[str, Any]] = [{}, {"stop": ("#",)}, {"stop": ("#",), "max_tokens": 2}, {"max_tokens": 900}]
    asked = [replace(each, **own) for at, own in enumerate(ways) for each in requests(3, start=3 * at)]
    async with running(server := Server(stops=True), choices=4) as made:
        done = {each.request: each for each in await drained(made, asked, keep_tokens=True)}
        found = [(done[each].text, done[each].finish) for each in asked[::3]]
        assert found == [
            (TEXT, Finish.STOP), ("=12#", Finish.STOP), ("=1", Finish.LENGTH), (TEXT, Finish.STOP),
        ]  # fmt: skip
        assert all((done[each].text, done[each].finish) == found[at // 3] for at, each in enumerate(asked))
        bodies = [(body["n"], body.get("stop"), body["max_tokens"]) for body in server.bodies]
        assert sorted(bodies, key=str) == sorted([(3, None, 16), (3, ["#"], 16), (3, ["#"], 2), (3, None, 16)], key=str)


@pytest.mark.parametrize("names_stop", ["stop_reason", "matched_stop"])
@in_loop
async def test_servers_that_trim_stop_texts_but_name_them_serve_as_well(names_stop: str) -> None:
    async with running(server := Server(stops=True, names_stop=names_stop), extensions=False) as made:
        ended, whole = [replace(each, stop=stop) for each, stop in zip(requests(2), [("#",), ("?",)], strict=True)]
        done = {each.request: each for each in await drained(made, [ended, whole])}
        assert (done[ended].text, done[whole].text) == ("=12#", TEXT)
        assert not any("include_stop_str_in_output" in body for body in server.bodies)


@in_loop
async def test_a_limit_is_what_the_context_leaves() -> None:
    async with running(server := Server(stops=True)) as made:
        (near,) = requests(1)
        near = replace(near, prefix=replace(near.prefix, prompt_ids=(1,) * (CONTEXT - 4)), max_tokens=9)
        (done,) = await drained(made, [near])
        assert (server.bodies[0]["max_tokens"], done.text, done.finish) == (4, TEXT[:4], Finish.LENGTH)


@in_loop
async def test_all_requests_of_a_problem_go_to_one_server() -> None:
    pair = Server(), Server()
    async with running(*pair) as made:
        for start in (0, 2):
            await asyncio.gather(*(drained(made, requests(2, f"{name}", start)) for name in range(6)))
        first, second = (Counter(server.prompts) for server in pair)
        assert not first.keys() & second.keys()
        assert set(first.values()) | set(second.values()) == {4}
        assert len(first) == len(second) == 3


@in_loop
async def test_aborted_requests_come_back_unanswered_and_their_server_is_reported() -> None:
    async with running(server := Server(), connections=2) as made:
        server.misbehave([Act.HANG] * 2)
        asked = requests(6)
        sampling = asyncio.create_task(drained(made, asked))
        while server.seen[Act.HANG] < 2:
            await asyncio.sleep(0.001)
        assert made.load == Load(running=2, waiting=4)
        made.abort([asked[0].request_id, asked[1].request_id, asked[5].request_id, "never asked"])
        made.abort([asked[0].request_id])
        done = {each.request.request_id: each for each in await sampling}
        assert [done[each.request_id].finish for each in asked] == [
            *[Finish.ABORT] * 2, *[Finish.STOP] * 3, Finish.ABORT,
        ]  # fmt: skip
        while server.given_up < 2:
            await asyncio.sleep(0.001)
        assert len(server.bodies) == 5


@in_loop
async def test_a_caller_who_goes_away_leaves_nothing_behind() -> None:
    async with running(server := Server(), connections=2) as made:
        server.misbehave([Act.HANG] * 2)
        sampling = asyncio.create_task(drained(made, requests(9)))
        while server.seen[Act.HANG] < 2:
            await asyncio.sleep(0.001)
        sampling.cancel()
        await asyncio.gather(sampling, return_exceptions=True)
        assert made.load.waiting == 0
        assert answered_once(await drained(made, requests(9)), requests(9))
        assert (made.load, server.given_up) == (Load(), 2)
