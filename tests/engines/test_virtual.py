"""The engine on the virtual clock that `make bench-scale` measures with."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.hardware import device_named
from pipeline.core.records import Completion, Finish, Prefix, Problem, Request
from pipeline.engines import roofline
from pipeline.engines.architectures import architecture_of
from tests.bench.scale.cache import BLOCK, PrefixCache
from tests.bench.scale.engine import Reply, VirtualEngine
from tests.bench.scale.pace import QWEN_1_5B, QWEN_1_5B_CONFIG, QWEN_7B, QWEN_7B_CONFIG, Pace
from tests.faults.loop import VirtualLoop

_Result = TypeVar("_Result")

PACE = Pace(
    name="toy",
    read_bytes=100.0,
    kv_bytes=1.0,
    multiplied=4.0,
    prefill_multiplied=4.0,
    bandwidth=10.0,
    flops=8.0,
    kv_tokens=1_000,
)
"""A step reads for 10 s and a tenth of a second per token of context, or computes for a second per sequence; a token of a
prompt takes a second."""
PROBLEM = Problem(problem_id="p", text="", golds=("1",))


def test_one_request_takes_the_sum_of_its_prefill_and_its_steps() -> None:
    engine = _engine({"a": 3}, capacity=2)

    async def work() -> float:
        await engine.start()
        await _all(engine, [_request("a", prompt=20)])
        return asyncio.get_running_loop().time()

    assert _on_clock(work()) == pytest.approx(20 + (10 + 2.0) + (10 + 2.1) + (10 + 2.2))
    assert engine.work.generated == engine.work.steps == 3
    assert engine.work.finished == 3
    assert engine.work.attended == 20 + 21 + 22
    assert engine.work.prompt == engine.work.prefilled == 20


def test_a_late_request_comes_in_when_the_step_under_way_has_ended() -> None:
    engine = _engine({"a": 2, "b": 1}, capacity=2)

    async def work() -> list[float]:
        await engine.start()
        loop = asyncio.get_running_loop()
        ended = []

        async def one(name: str, after: float) -> None:
            await asyncio.sleep(after)
            await _all(engine, [_request(name, prompt=10, first=name == "b")])
            ended.append(loop.time())

        await asyncio.gather(one("a", 0.0), one("b", 15.0))
        return ended

    # Prefill 10 and a step of 11; the prompt of b takes 10, then both end with one step at contexts of 11 and 10.
    assert _on_clock(work()) == pytest.approx([10 + 11 + 10 + 12.1] * 2)


def test_the_time_of_many_steps_is_the_sum_of_single_ones_on_both_sides_of_the_ridge() -> None:
    single = sum(PACE.decode_seconds(9, 5 + 9 * step, 1) for step in range(40))
    assert PACE.decode_seconds(9, 5, 40) == pytest.approx(single)
    ridge = replace(PACE, read_bytes=1.0, multiplied=40.0, flops=80.0)
    steps = [ridge.decode_seconds(3, 3 * step, 1) for step in range(40)]
    assert steps[0] == steps[1] < steps[-1]
    assert ridge.decode_seconds(3, 0, 40) == pytest.approx(sum(steps))


@pytest.mark.parametrize("pace", [QWEN_1_5B, QWEN_7B], ids=lambda pace: pace.name)
def test_steps_within_undoes_the_time_of_steps(pace: Pace) -> None:
    for steps in (1, 7, 500):
        seconds = pace.decode_seconds(1024, 300_000, steps)
        assert pace.steps_within(1024, 300_000, seconds, 1_000) == steps
        assert pace.steps_within(1024, 300_000, seconds * 1.0001, 1_000) == steps + 1


def test_a_single_step_takes_what_the_roofline_says() -> None:
    device = device_named("H100 SXM")
    assert device is not None
    for config, pace in ((QWEN_1_5B_CONFIG, QWEN_1_5B), (QWEN_7B_CONFIG, QWEN_7B)):
        architecture = architecture_of(config)
        for running in (1, 256, 1024):
            expected = roofline.decode_seconds(architecture, device, batch=running, context=400)
            assert pace.decode_seconds(running, 400 * running, 1) == pytest.approx(expected)
        assert pace.prefill_seconds(1_000) == pytest.approx(
            roofline.prefill_seconds(architecture, device, tokens=1_000)
        )


LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 30), st.floats(0, 300)), min_size=1, max_size=25)


@given(LENGTHS, st.integers(1, 6), st.sets(st.integers(0, 24)))
@settings(max_examples=60)
def test_every_request_is_answered_once_and_tokens_add_up(
    asked: list[tuple[int, int, float]], capacity: int, aborted: set[int]
) -> None:
    tokens = {str(number): length for number, (length, _, _) in enumerate(asked)}
    engine = _engine(tokens, capacity=capacity)
    most = 0

    async def one(number: int, prompt: int, after: float) -> list[Completion]:
        nonlocal most
        await asyncio.sleep(after)
        came = await _all(engine, [_request(str(number), prompt=prompt)])
        most = max(most, engine.load.running)
        return came

    async def work() -> list[Completion]:
        await engine.start()
        tasks = [asyncio.create_task(one(number, prompt, after)) for number, (_, prompt, after) in enumerate(asked)]
        await asyncio.sleep(100)
        engine.abort(str(number) for number in aborted)
        return [completion for task in tasks for completion in await task]

    came = _on_clock(work())
    assert sorted(completion.request.request_id for completion in came) == sorted(tokens)
    assert most <= capacity
    whole = [completion for completion in came if completion.finish is Finish.STOP]
    stopped = [completion for completion in came if completion.finish is Finish.ABORT]
    assert all(completion.n_tokens == tokens[completion.request.request_id] for completion in whole)
    assert len(whole) + len(stopped) == len(came)
    assert sum(completion.n_tokens for completion in whole) <= engine.work.generated
    assert not stopped or aborted
    if not stopped:
        assert engine.work.generated == sum(tokens.values())
    assert engine.load.running == engine.load.waiting == 0
    assert 0 <= engine.tail_seconds <= engine.work.unfilled_seconds


def test_empty_places_count_only_where_nothing_waits() -> None:
    engine = _engine({"a": 5, "b": 5, "c": 5}, capacity=2)

    async def work() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        await engine.start()
        await _all(engine, [_request(name, prompt=1) for name in "abc"])
        alone = loop.time()
        await asyncio.sleep(7)
        return alone, engine.work.unfilled_seconds

    ended, unfilled = _on_clock(work())
    alone = 1 + PACE.decode_seconds(1, 1, 5)
    assert unfilled == pytest.approx(alone / 2 + 7)
    assert engine.tail_seconds == pytest.approx(unfilled)
    assert ended > alone


def test_whole_blocks_are_computed_once_and_the_last_tokens_always() -> None:
    cache = PrefixCache(blocks=100)
    long = tuple(range(3 * BLOCK))
    assert cache.computed("long", long) == 3 * BLOCK
    assert cache.computed("long", long) == BLOCK
    assert cache.computed("short", long[: 2 * BLOCK]) == BLOCK
    assert cache.computed("longer", (*long, 7)) == BLOCK + 1
    assert cache.computed("other", (7, *long)) == 3 * BLOCK + 1


def test_blocks_that_were_used_least_recently_are_forgotten() -> None:
    cache = PrefixCache(blocks=2)
    first, second = tuple(range(BLOCK + 1)), tuple(range(100, 2 * BLOCK + 101))
    assert cache.computed("first", first) == BLOCK + 1
    cache.computed("second", second)
    assert cache.computed("second", second) == 1
    assert cache.computed("first", first) == BLOCK + 1


def _engine(tokens: dict[str, int], *, capacity: int) -> VirtualEngine:
    def reply(request: Request) -> Reply:
        return Reply(text="The answer is 1.", tokens=tokens[request.request_id])

    return VirtualEngine(PACE, reply, capacity=capacity, cache_blocks=0)


def _request(name: str, *, prompt: int, first: bool = True) -> Request:
    prefix = Prefix(prefix_id=name, step_index=0, text="", prompt_ids=tuple(range(prompt)))
    return Request(request_id=name, issue_index=0 if first else 1, problem=PROBLEM, prefix=prefix)


async def _all(engine: VirtualEngine, requests: Sequence[Request]) -> list[Completion]:
    return [completion async for batch in engine.generate(requests) for completion in batch]


def _on_clock(work: Coroutine[Any, Any, _Result]) -> _Result:
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
