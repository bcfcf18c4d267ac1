"""`policy=openai` with faulty answers: each request is answered once, or the engine dies with a reason."""

import asyncio
from collections import Counter, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import EngineDied
from pipeline.core.progress import Load
from pipeline.core.records import Completion, Finish
from tests.engines.openai_engines import answered_once, drained, in_loop, requests, running
from tests.engines.served import Act, Server

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_openai")]

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
