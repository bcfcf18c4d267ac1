"""`policy=openai`: starts, servers that answer, faulty answers, and servers that are busy, away or turn requests away."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.label import SamplingConfig
from pipeline.core.errors import EngineDied, PolicyError
from pipeline.core.progress import Load
from pipeline.core.records import Completion, Finish
from pipeline.engines.openai import dispatch, wire
from pipeline.engines.openai import engine as engine_module
from pipeline.engines.oracle import ByteTokenizer
from tests.engines.openai_engines import TEXT, answered_once, drained, engine, in_loop, requests, run, running
from tests.engines.served import CONTEXT, MODEL, Act, Server, served

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


MISTAKES: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({"models": {"data": [{"id": "other"}, {"id": "third"}]}}, {}, ["serve policy.model=tiny, it serves other, third"]),
    ({"models": {"data": []}}, {}, ["does not serve policy.model=tiny, it serves none"]),
    ({"models": "<html>"}, {}, ["is not the base URL of an OpenAI-compatible server", "<html>"]),
    ({"models": "no", "models_status": 404}, {}, ["/models answered with status 404: no", "takes the part of the URL before"]),
    ({"models": "no", "models_status": 302}, {}, ["answered with status 302", "policy.openai.urls takes"]),
    ({"models": "no", "models_status": 500}, {}, ["no server of policy.openai.urls is reachable", "with status 500: no"]),
    ({"key": "other"}, {}, ["answered with status 401", "policy.openai.api_key_env"]),
    ({"acts": [Act.NO_ROUTE]}, {}, ["/completions answered with status 404", "takes the part of the URL before /completions"]),
    ({"acts": [Act.REFUSE]}, {}, ["answered with status 400: authorised by", "policy.openai.extensions=false"]),
    ({"acts": [Act.NOT_JSON]}, {}, ["/completions is not usable", "its answer is not JSON"]),
    ({"acts": [Act.OTHER_MODEL]}, {}, ["/completions is not usable", "another model, somebody else"]),
    ({"acts": [Act.DROP]}, {}, ["no server of policy.openai.urls is reachable", "broke off its answer"]),
    ({}, {"max_model_len": CONTEXT + 1}, ["on a server is 512 tokens", "less than policy.max_model_len=513"]),
    ({}, {"max_model_len": 16}, ["context of 16 tokens", "lower sampling.max_tokens=16"]),
    ({"models": {"data": [{"id": MODEL}]}}, {}, ["does not state the model's context length: set policy.max_model_len"]),
]  # fmt: skip


@pytest.mark.parametrize(("server", "how", "said"), MISTAKES, ids=[said[0] for *_, said in MISTAKES])
def test_a_mistake_is_reported_before_any_work(server: dict[str, Any], how: dict[str, Any], said: list[str]) -> None:
    async def work() -> str:
        async with served(Server(**{**server, "acts": deque(server.get("acts", ()))})) as wrong:
            made = engine(wrong, **how)
            with pytest.raises(PolicyError) as printed:
                await made.start()
            await made.close()
            return str(printed.value)

    printed = run(work())
    assert all(words in printed for words in said), printed
    assert "\n" not in printed


def test_where_nothing_listens_is_reported_before_any_work() -> None:
    async def work() -> str:
        async with served(Server()) as server:
            pass
        with pytest.raises(PolicyError) as printed:
            await engine(server).start()
        return str(printed.value)

    assert "no server answers at http://127.0.0.1" in (printed := run(work()))
    assert "start one, or correct the URL" in printed


@in_loop
async def test_the_tokenizer_of_another_model_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(ByteTokenizer):
        def decode(self, ids: Sequence[int]) -> str:
            return super().decode([each + 1 for each in ids])

    monkeypatch.setattr(engine_module, "load_tokenizer", lambda *_: Other())
    async with served(Server()) as server:
        with pytest.raises(PolicyError, match=r"policy\.tokenizer is not the tokenizer of the model"):
            await engine(server).start()


@in_loop
async def test_the_servers_context_holds_unless_the_setting_is_shorter() -> None:
    async with running(Server(), Server(models={"data": [{"id": MODEL, "max_model_len": 400}]})) as made:
        assert made.max_model_len == 400
    async with running(Server(), max_model_len=100) as made:
        assert made.max_model_len == 100
    async with running(Server(models={"data": [{"id": MODEL}]}), max_model_len=100) as made:
        assert made.max_model_len == 100


HEALED = [act for act in Act if act not in (Act.SERVE, Act.REFUSE, Act.HANG)]
"""What a server may do to a request that a later try makes good."""


@pytest.mark.parametrize("choices", [1, 3])
@pytest.mark.parametrize("act", HEALED, ids=lambda act: act.value)
@in_loop
async def test_what_a_server_does_wrong_now_and_then_is_made_good(act: Act, choices: int) -> None:
    async with running(server := Server(acts=deque([act] * 3)), choices=choices) as made:
        asked = requests(12)
        assert answered_once(await drained(made, asked), asked)
        assert server.seen[act] == 3
        assert made.load == Load()


@in_loop
async def test_a_request_that_a_server_refuses_comes_back_unserved_and_others_go_on() -> None:
    async with running(server := Server(acts=deque([Act.REFUSE]))) as made:
        done = await drained(made, requests(5))
        assert sorted(each.finish for each in done) == [Finish.ENGINE_FAILED, *[Finish.STOP] * 4]
        assert [(each.text, each.n_tokens) for each in done if each.finish is Finish.ENGINE_FAILED] == [("", 0)]
        assert server.seen[Act.REFUSE] == 1


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (Act.ERROR, "answered with status 500: authorised by None [31m"),
        (Act.NOT_JSON, "its answer is not JSON: <html>"),
        (Act.WRONG_TYPES, "a choice has no text"),
        (Act.OTHER_MODEL, "for another model, somebody else"),
        (Act.NO_CHOICE, "0 choices for a request of 1"),
        (Act.TOO_LARGE, "sent more than"),
        (Act.SHUTTING_DOWN, "finish_reason=abort"),
        (Act.DROP, "broke off its answer"),
        (Act.DROP_HALFWAY, "broke off its answer"),
        (Act.HANG, "did not answer within policy.openai.timeout_seconds=0.1"),
    ],
)
@in_loop
async def test_a_request_that_fails_again_and_again_is_the_death_of_the_engine(act: Act, said: str) -> None:
    async with running(server := Server(), timeout_seconds=0.1 if act is Act.HANG else 10) as made:
        server.misbehave([act] * 100)
        with pytest.raises(EngineDied) as death:
            await drained(made, requests(1))
        assert "failed 4 times (policy.openai.retries), the last time: " in str(death.value)
        assert said in str(death.value)
        assert server.seen[act] == 4


@given(
    st.lists(st.lists(st.sampled_from([*HEALED, Act.REFUSE, Act.SERVE]), max_size=12), min_size=1, max_size=3),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 3),
    st.integers(1, 3),
)
@in_loop
async def test_whatever_servers_do_each_request_is_answered_once_or_the_engine_is_dead(
    schedules: list[list[Act]], sizes: list[int], connections: int, choices: int
) -> None:
    servers = [Server(acts=deque(acts), retry_after="0.002") for acts in schedules]
    async with running(*servers, connections=connections, choices=choices, retries=2) as made:
        asked = [requests(size, f"{number}") for number, size in enumerate(sizes)]
        done: list[list[Completion]] = [[] for _ in sizes]
        ended = await asyncio.gather(*map(drained, [made] * len(sizes), asked, done), return_exceptions=True)
        for some, came, end in zip(asked, done, ended, strict=True):
            if isinstance(end, BaseException):
                assert isinstance(end, EngineDied), end
                assert max(Counter(each.request.request_id for each in came).values(), default=0) <= 1
            else:
                assert answered_once(came, some)
        assert all(server.most_at_once <= connections for server in servers)
        assert made.load.waiting == 0
        if sum(len(acts) for acts in schedules) <= made._servers.retries:
            assert not any(isinstance(end, BaseException) for end in ended)
        if not any(isinstance(end, BaseException) for end in ended):
            refused = sum(each.finish is Finish.ENGINE_FAILED for came in done for each in came)
            assert refused <= choices * sum(server.seen[Act.REFUSE] for server in servers)


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
