"""The oracle answers every request once, always with the same text, and is correct with its stated probability."""

import asyncio
import math
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import EngineDied
from pipeline.core.ids import rollout_id
from pipeline.core.progress import Load
from pipeline.core.records import Completion, Finish, Prefix, Problem, Request, Verdict
from pipeline.engines.oracle import ByteTokenizer, OracleConfig, OracleEngine, true_value
from pipeline.engines.oracle_tree import Shape
from pipeline.graders.math.compare import quick_verdict
from tests import strategies as our
from tests.engines.openai_engines import drained
from tests.oracles.lab import LabEngine, LabRollouts
from tests.settings import policy_settings

pytestmark = pytest.mark.slow

SEVEN = Problem(problem_id="p7", text="Seven?", golds=("7",))
GOLDS = [
    ("3", "4", "5"),
    ("10", "1/2"),
    *((gold,) for gold in ("7", "-5", "1,234", "--5", "blue", "\\text{yes}", "\\frac{1}{2}", "9" * 30, "7.5", "٣")),
]


def engine(seed: int = 0, spread: float = 0.35, max_model_len: int | None = None) -> OracleEngine:
    policy = policy_settings("oracle", oracle=OracleConfig(seed=seed), max_model_len=max_model_len)
    return OracleEngine(policy, Shape(spread=spread))


def requests(count: int, prefix_id: str = "x", problem: Problem = SEVEN, text: str = "", **more: Any) -> list[Request]:
    prefix = Prefix(prefix_id=prefix_id, step_index=text.count("\n"), text=text, prompt_ids=(1,))
    return [
        Request(request_id=rollout_id(prefix_id, index), issue_index=index, problem=problem, prefix=prefix, **more)
        for index in range(count)
    ]


@given(st.lists(st.integers(0, 700), max_size=4))
def test_every_request_is_completed_exactly_once(sizes: list[int]) -> None:
    asked = [requests(size, f"prefix{number}") for number, size in enumerate(sizes)]
    oracle = engine()

    async def run() -> list[list[Completion]]:
        await oracle.start()
        done = await asyncio.gather(*(drained(oracle, some) for some in asked))
        await oracle.close()
        await oracle.close()
        return done

    for some, done in zip(asked, asyncio.run(run()), strict=True):
        assert sorted(completion.request.request_id for completion in done) == [request.request_id for request in some]
        assert all(completion.request in some for completion in done[:3])
        assert all(completion.finish is Finish.STOP and completion.n_tokens > 0 for completion in done)
    assert oracle.load == Load()


@given(st.randoms(use_true_random=False), st.integers(1, 40))
def test_a_completion_depends_on_its_request_and_the_seed_alone(random: Random, size: int) -> None:
    asked = requests(30, "x") + requests(30, "y")
    shuffled = list(asked)
    random.shuffle(shuffled)
    parts = [shuffled[start : start + size] for start in range(0, len(shuffled), size)]

    async def run(oracle: OracleEngine, some: list[list[Request]]) -> dict[str, Completion]:
        done = [completion for part in some for completion in await drained(oracle, part)]
        return {completion.request.request_id: completion for completion in done}

    whole = asyncio.run(run(engine(seed=3), [asked]))
    assert asyncio.run(run(engine(seed=3), parts)) == whole
    assert asyncio.run(run(engine(seed=4), [asked])) != whole


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("spread", [0.0, 0.35, 1.0])
def test_success_is_as_frequent_as_the_true_value_says(number: int, spread: float) -> None:
    n = 20_000
    prefix_id = f"prefix {number}"
    problem = Problem(problem_id=f"problem {number}", text="?", golds=("7",))
    done = asyncio.run(drained(engine(seed=number, spread=spread), requests(n, prefix_id, problem)))
    wins = sum(completion.text.endswith("The answer is 7.") for completion in done)
    value = true_value(number, spread, problem, prefix_id)
    assert abs(wins - n * value) <= 5 * math.sqrt(n * value * (1 - value))


@given(st.integers(0, 2**32), st.floats(0, 1), our.hex_ids, our.hex_ids, our.hex_ids)
def test_true_values_are_probabilities_near_their_problem(
    seed: int, spread: float, problem_id: str, left: str, right: str
) -> None:
    problem = Problem(problem_id=problem_id, text="?", golds=("1",))
    values = [true_value(seed, spread, problem, prefix_id) for prefix_id in (left, right)]
    assert all(0 <= value <= 1 for value in values)
    assert abs(values[0] - values[1]) <= 2 * spread + 1e-12
    assert true_value(seed, 0.0, problem, left) == true_value(seed, 0.0, problem, right)


@pytest.mark.parametrize("golds", [*GOLDS, ("0", "1"), (",",), ("none of these",)])
def test_wrong_answers_are_wrong_and_right_ones_right_whatever_the_golds(golds: tuple[str, ...]) -> None:
    problem = Problem(problem_id="p", text="?", golds=golds)
    done = asyncio.run(drained(engine(spread=0.0), requests(300, "x", problem)))
    texts = {completion.text for completion in done}
    good = {text for text in texts if text.endswith(f"The answer is {golds[0]}.")}
    assert len(good) == 1
    assert len(texts) >= 2
    wrong = [text.rpartition("The answer is ")[2].removesuffix(".") for text in texts - good]
    assert all(quick_verdict(gold, answer) is not Verdict.CORRECT for gold in golds for answer in wrong)


@pytest.mark.parametrize(("fault", "error"), [({"fail_after": 300}, EngineDied), ({"hang_after": 300}, TimeoutError)])
def test_a_scripted_fault_strikes_on_the_first_attempt_only(fault: dict[str, Any], error: type[Exception]) -> None:
    asked, done = requests(1_000), list[Completion]()

    def sampled(attempt: int, seconds: float) -> None:
        failing = LabEngine(engine(), LabRollouts(**fault), attempt)
        asyncio.run(asyncio.wait_for(drained(failing, asked, done), seconds))

    with pytest.raises(error):
        sampled(1, 0.2)
    assert 300 <= len(done) < 1_000
    before, done = done, []
    sampled(2, 5)
    assert len(done) == 1_000
    assert done[: len(before)] == before


def test_tokens_are_kept_when_asked_for_only() -> None:
    tokenizer = ByteTokenizer()
    kept = asyncio.run(drained(engine(), requests(5), keep_tokens=True))
    assert [tokenizer.decode(completion.token_ids) for completion in kept] == [completion.text for completion in kept]
    assert all(completion.token_ids == () for completion in asyncio.run(drained(engine(), requests(5))))


def test_load_counts_what_is_still_to_come_and_tokens_are_those_of_finished_batches() -> None:
    oracle = engine()

    async def run() -> list[tuple[int, int, int]]:
        done, seen = 0, []
        async for batch in oracle.generate(requests(600)):
            done += sum(completion.n_tokens for completion in batch)
            seen.append((oracle.load.running + oracle.load.waiting, oracle.work.generated, done))
        return seen

    waiting, generated, finished = zip(*asyncio.run(run()), strict=True)
    assert list(waiting) == sorted(waiting, reverse=True)
    assert 0 < waiting[0] < 600
    assert waiting[-1] == 0
    assert generated == finished
    assert generated[0] > 0


def test_it_reports_who_it_is_and_how_much_it_holds() -> None:
    assert engine(seed=5).policy == "oracle:seed=5"
    assert engine(max_model_len=64).max_model_len == 64
    assert engine().max_model_len >= 100_000


@given(our.clean_text)
def test_bytes_are_tokens_and_come_back(text: str) -> None:
    tokenizer = ByteTokenizer()
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_requests_that_are_aborted_on_their_way_come_back_without_text_and_the_others_as_ever() -> None:
    asked = requests(600)
    unwanted = {request.request_id for request in asked[300:310]}
    oracle = engine()

    async def run() -> list[Completion]:
        oracle.abort(unwanted)  # they are not requested yet
        done: list[Completion] = []
        async for batch in oracle.generate(asked):
            done.extend(batch)
            oracle.abort(unwanted)
        return done

    done = asyncio.run(run())
    assert [completion.request for completion in done] == asked
    for completion in done:
        aborted = completion.request.request_id in unwanted
        assert completion.finish is (Finish.ABORT if aborted else Finish.STOP)
        assert bool(completion.text) is not aborted
    assert all(completion.finish is Finish.STOP for completion in asyncio.run(drained(oracle, asked)))
