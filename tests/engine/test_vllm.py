"""The embedded model on vLLM's real CPU engine."""

import asyncio
import os
import random
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from pipeline.__main__ import compose_label
from pipeline.engine.detokenize import completion_text
from pipeline.engine.embedded import embedded_model
from pipeline.engine.reaper import MARK, marked
from pipeline.engine.tokenizer import HfTokenizer
from pipeline.engine.vllm import VllmEngine
from pipeline.errors import EngineDied
from pipeline.grading.answered import Answered
from pipeline.ids import rollout_id
from pipeline.prompts import Prompter
from pipeline.records import Completion, Finish, Problem, Request
from pipeline.roofline import parameters
from tests.conftest import SHARED_DATA, run_stepvalue, write_rows

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]

PROBLEM = Problem(
    problem_id="p", text="Ann has 3 bags with 4 nuts in each bag. How many nuts does she have?", golds=("12",)
)


class FirstLine(Answered):
    """Takes the first line for the answer where it is told to, so that one engine serves tests with and without."""

    asked = False

    def may_state(self, piece: str) -> bool:
        return self.asked and bool(piece.strip())

    def complete(self, text: str) -> bool:
        return "\n" in text


def requests(engine: VllmEngine, config: Any, count: int, batch: int) -> list[Request]:
    prompter = Prompter(
        tokenizer=engine.tokenizer,
        config=config.policy.prompt,
        max_tokens=config.sampling.max_tokens,
        max_model_len=engine.max_model_len,
    )
    root = prompter.root(PROBLEM)
    return [
        Request(request_id=rollout_id(f"{batch}", issue), issue_index=issue, problem=PROBLEM, prefix=root)
        for issue in range(count)
    ]


def prompted(request: Request, number: int, prompt_ids: tuple[int, ...]) -> Request:
    return replace(
        request, request_id=rollout_id("other", number), prefix=replace(request.prefix, prompt_ids=prompt_ids)
    )


async def sampled(engine: VllmEngine, asked: list[Request]) -> list[Completion]:
    return [completion async for group in engine.generate(asked, keep_tokens=True) for completion in group]


async def generated_until(engine: VllmEngine, task: "asyncio.Task[list[Completion]]", enough: int) -> int:
    """The engine's count of tokens when it first is `enough`, or when the task is done."""
    while engine.work.generated < enough and not task.done():
        await asyncio.sleep(0.005)
    return 0 if task.done() else engine.work.generated


def test_the_engine_samples_and_its_death_is_noticed() -> None:
    config = compose_label(["data=sample", "run_dir=x", "policy=embedded", "sampling.max_tokens=24"])

    async def work() -> None:
        engine = VllmEngine(config.policy, config.sampling, cpus=2, answered=FirstLine())
        await engine.start()
        token = os.environ[MARK]
        try:
            runs_on(engine)
            assert engine._engine.model_config.seed > 0  # vLLM's own, with which every start draws the same
            await samples(engine, requests(engine, config, 6, batch=0))
            await stops_at_the_answer(engine, requests(engine, config, 6, batch=4))
            await refuses(engine, requests(engine, config, 2, batch=1))
            await aborts_unasked(engine, requests(engine, config, 4, batch=2))
            await is_killed(engine, requests(engine, config, 2, batch=3), token)
        finally:
            await engine.close()
        assert marked(token) == []

    asyncio.run(work())


def runs_on(engine: VllmEngine) -> None:
    """A model of 134.5 million parameters, and this processor as it was measured."""
    hardware = engine.hardware
    assert hardware is not None
    assert hardware.architecture is not None
    assert hardware.device is not None
    assert parameters(hardware.architecture) == pytest.approx(134.5e6, rel=1e-3)
    assert (hardware.device.name, hardware.unknown) == ("2 CPU cores", "")
    assert 1e8 < hardware.device.bandwidth < 1e12
    assert 1e8 < hardware.device.flops < 1e14


async def samples(engine: VllmEngine, asked: list[Request]) -> None:
    task = asyncio.create_task(sampled(engine, asked))
    assert 0 < await generated_until(engine, task, 1) < await generated_until(engine, task, 4 * len(asked))
    done = await task
    assert sorted(completion.request.issue_index for completion in done) == list(range(6))
    for completion in done:
        assert 0 < completion.n_tokens == len(completion.token_ids) <= 24
        assert (completion.finish is Finish.LENGTH) == (
            completion.n_tokens == 24 and completion.finish is not Finish.STOP
        )
        assert completion.text == engine.tokenizer.decode(completion.token_ids)
    assert len({completion.text for completion in done}) > 1
    assert engine.work.generated == sum(completion.n_tokens for completion in done)
    assert engine.max_model_len == 1024
    assert engine.policy.startswith("SmolLM2-135M-Instruct@main:")
    assert engine.policy.endswith(":cpu:stop_at_answer")
    # Blocks of 32 tokens: of the prompts behind the first one, less than two blocks each are computed.
    prompt = len(asked[0].prefix.prompt_ids)
    assert engine.work.prompt == 6 * prompt
    assert engine.work.prefilled < prompt + 5 * 33
    # Six of 128 places were taken.
    unfilled = engine.work.unfilled_seconds
    await asyncio.sleep(0.1)
    assert unfilled > 0
    assert engine.work.unfilled_seconds >= unfilled + 0.1


async def stops_at_the_answer(engine: VllmEngine, asked: list[Request]) -> None:
    FirstLine.asked = True
    try:
        done = await sampled(engine, asked)
    finally:
        FirstLine.asked = False
    for completion in done:
        assert completion.text.count("\n") <= 1
        assert completion.text == engine.tokenizer.decode(completion.token_ids)
    stopped = [completion for completion in done if completion.text.endswith("\n")]
    assert len(stopped) > 2
    assert {completion.finish for completion in stopped} == {Finish.STOP}


async def refuses(engine: VllmEngine, good: list[Request]) -> None:
    """Prompts that are too long, of tokens that do not exist, and empty, among others that are served."""
    bad = [prompted(good[0], number, ids) for number, ids in enumerate([(1,) * 5000, (10**9, 1), (-1,), ()])]
    done = {completion.request.request_id: completion for completion in await sampled(engine, [*bad, *good])}
    assert len(done) == len(bad) + len(good)
    for request in bad:
        completion = done[request.request_id]
        assert (completion.finish, completion.text, completion.n_tokens) == (Finish.ENGINE_FAILED, "", 0)
    assert all(done[request.request_id].n_tokens > 0 for request in good)


async def aborts_unasked(engine: VllmEngine, asked: list[Request]) -> None:
    """As vLLM does when it is told to end: what it gives back then is cut somewhere, which is no completion."""
    task = asyncio.create_task(sampled(engine, asked))
    assert await generated_until(engine, task, engine.work.generated + 4) > 0
    await engine._engine.abort([request.request_id for request in asked])
    with pytest.raises(EngineDied, match="finish_reason=abort"):
        await task


async def is_killed(engine: VllmEngine, asked: list[Request], token: str) -> None:
    for pid in marked(token):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(EngineDied):
        await sampled(engine, asked)


def test_text_of_whole_completions_is_what_vllm_makes_of_single_tokens() -> None:
    from transformers import AutoTokenizer
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine.detokenizer import IncrementalDetokenizer

    hugging_face = AutoTokenizer.from_pretrained(embedded_model())
    tokenizer = HfTokenizer(hugging_face)
    drawn = random.Random(0)
    prompt_ids = tokenizer.encode_chat([{"role": "user", "content": PROBLEM.text}])
    text = [*tokenizer.encode(" Käse, 漢字 and 😀😀.\nThe answer is 12."), hugging_face.eos_token_id]
    for _ in range(200):
        ids = text[: drawn.randint(0, len(text))] + drawn.choices(range(len(hugging_face)), k=drawn.randint(0, 8))
        request = SimpleNamespace(sampling_params=SamplingParams(), prompt_token_ids=prompt_ids, request_id="r")
        incremental = IncrementalDetokenizer.from_new_request(hugging_face, request)
        incremental.update(ids, False)
        made = incremental.get_next_output_text(finished=True, delta=False)
        assert completion_text(tokenizer.decode, prompt_ids, ids) == made


def test_the_whole_job_with_a_real_model(tmp_path: Path) -> None:
    """Given chains, a chain without a stated answer, a problem alone, and real GSM8K rows where they are at hand."""
    rows: list[dict[str, Any]] = [
        {
            "id": "given",
            "problem": PROBLEM.text,
            "answer": "12",
            "steps": ["The bags hold 3 * 4 = 12 nuts.", "The answer is 12."],
        },
        {
            "id": "open",
            "problem": PROBLEM.text,
            "answer": "12",
            "solution": "The bags hold 3 * 4 = 12 nuts.\nSo 12 nuts.",
        },
        {"id": "alone", "problem": "A box has 5 red pens and 4 blue pens. How many pens are in the box?", "answer": 9},
    ]
    data = write_rows(tmp_path / "rows.jsonl", rows)
    gsm8k = SHARED_DATA / "gsm8k_dev.jsonl"
    if gsm8k.exists():
        with data.open("a") as file, gsm8k.open() as source:
            file.writelines(next(source) for _ in range(2))
    settings = ["estimator=fixed", "sampling.rollouts=2", "sampling.solutions=2", "sampling.max_tokens=48"]
    done = run_stepvalue(["label", f"data.path={data}", f"run_dir={tmp_path / 'run'}", *settings])
    assert done.returncode == 0, done.stderr
    labels = pl.read_parquet(tmp_path / "run" / "labels" / "*.parquet")
    rollouts = pl.read_parquet(tmp_path / "run" / "rollouts" / "*.parquet")
    assert rollouts["rollout_id"].n_unique() == rollouts.height
    assert set(rollouts.group_by("prefix_id").len()["len"]) == {2}
    by_id = {row["source_id"]: row for row in labels.iter_rows(named=True)}
    assert by_id["given"]["origin"] == ["measured", "terminal"]
    assert by_id["given"]["outcome"] is True
    assert by_id["open"]["origin"] == ["measured", "measured"]
    assert by_id["given"]["value"][0] == by_id["open"]["value"][0]
    assert all(row["policy"].startswith("SmolLM2-135M-Instruct") for row in by_id.values())
    for row in labels.iter_rows(named=True):
        ends = row["step_ends"]
        assert "".join(row["solution"][a:b] for a, b in zip([0, *ends], ends, strict=False)) == row["solution"]
        for origin, graded, ungraded in zip(row["origin"], row["n_rollouts"], row["n_ungraded"], strict=True):
            assert graded + ungraded == (0 if origin == "terminal" else 2)
    drawn = pl.read_parquet(tmp_path / "run" / "solutions" / "*.parquet")
    assert drawn.height == 2
    for row in drawn.iter_rows(named=True):  # the end of the turn is drawn, and is no part of the chain
        assert len(row["token_ids"]) - row["token_ends"][-1] == (row["finish"] == "stop")
