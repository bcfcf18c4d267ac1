"""vLLM's real CPU engine: one start of it, with the tiny policy, which is the only one of `make test`.

Its tests come in their order in this file: the last ones kill it.
"""

import asyncio
import json
import os
import random
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import torch

from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.config.fields import as_type
from pipeline.config.label import LabelConfig
from pipeline.core.errors import EngineDied, PolicyError
from pipeline.core.ids import rollout_id
from pipeline.core.records import Completion, Finish, Problem, Request
from pipeline.data.prompts import Prompter
from pipeline.engines.architectures import architecture_of
from pipeline.engines.embedded import embedded_model
from pipeline.engines.hugging_face import HfTokenizer
from pipeline.engines.roofline import parameters
from pipeline.engines.settings import HfConfig
from pipeline.engines.vllm.detokenize import completion_text
from pipeline.engines.vllm.engine import VllmEngine
from pipeline.engines.vllm.pooling import TokenReader
from pipeline.engines.vllm.reaper import MARK, processes_to_end
from pipeline.graders.math.extract import AnswerSeen
from pipeline.scorers.settings import ModelEngine
from tests.conftest import SHARED_DATA, run_stepvalue, write_rows
from tests.runtime.in_process import label_in_process
from tests.scorers.readers import engine_by, made
from tests.settings import compose_label
from tests.tiny.compared import implausible, shown, truth
from tests.tiny.policy import ASSET, LONG, MAX_TOKENS, OVERRIDES, PARAMETERS, TRUTH

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]

EXERCISE = Problem(problem_id="e", text="21+5*2-38", golds=("14",))
PROBLEM = Problem(
    problem_id="p", text="Ann has 3 bags with 4 nuts in each bag. How many nuts does she have?", golds=("12",)
)
KILLED = r"vLLM died: its process .* was killed by SIGKILL .*; its output is in .*\.log on "
LONG_PROMPT = 90
"""Tokens: two whole blocks of 32 and a part of one, and beside MAX_TOKENS within the tiny policy's context of 192."""


class FirstLine(AnswerSeen):
    """Treats the first line as the answer if requested, so that one engine serves tests with and without it."""

    asked = False

    def may_state(self, piece: str) -> bool:
        return self.asked and bool(piece.strip())

    def complete(self, text: str) -> bool:
        return "\n" in text


class LastingEngine(VllmEngine):
    """It is started once and outlives the workers that use it."""

    async def start(self) -> None:
        if not self.capacity:
            await super().start()

    async def close(self) -> None:
        """Left to `end`."""

    async def end(self) -> None:
        await super().close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """An engine in its event loop, and the mark of its processes."""

    config: LabelConfig
    engine: LastingEngine
    loop: asyncio.Runner
    mark: str

    def requests(self, count: int, batch: int) -> list[Request]:
        prompter = Prompter(
            tokenizer=self.engine.tokenizer,
            config=self.config.policy.prompt,
            max_tokens=self.config.sampling.max_tokens,
            max_model_len=self.engine.max_model_len,
        )
        root = prompter.root(EXERCISE)
        return [
            Request(request_id=rollout_id(f"{batch}", issue), issue_index=issue, problem=EXERCISE, prefix=root)
            for issue in range(count)
        ]

    async def sampled(self, asked: list[Request]) -> list[Completion]:
        return [completion async for group in self.engine.generate(asked, keep_tokens=True) for completion in group]

    async def generated_until(self, task: "asyncio.Task[list[Completion]]", enough: int) -> int:
        """The engine's count of tokens when it first is `enough`, or 0 when the task is done."""
        while self.engine.work.generated < enough and not task.done():
            await asyncio.sleep(0)
        return 0 if task.done() else self.engine.work.generated


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    config = compose_label([*OVERRIDES, f"data.path={TRUTH}", "run_dir=x"])
    policy = as_type(config.policy, HfConfig)
    engine = LastingEngine(
        policy,
        config.sampling,
        name=policy.model,
        model=lambda: policy.model,
        cpus=1,
        ending=FirstLine(),
        log_folder=str(tmp_path_factory.mktemp("logs")),
    )
    with pytest.MonkeyPatch.context() as patched, asyncio.Runner() as loop:
        patched.setenv(
            "TORCHDYNAMO_DISABLE", "1"
        )  # What counts ranks of tokens would be compiled, for a quarter of a minute.
        loop.run(engine.start())
        mark = os.environ[MARK]
        try:
            yield Started(config=config, engine=engine, loop=loop, mark=mark)
        finally:
            loop.run(engine.end())
    assert processes_to_end(mark) == []


def prompted(request: Request, number: int, prompt_ids: tuple[int, ...]) -> Request:
    return replace(
        request, request_id=rollout_id("other", number), prefix=replace(request.prefix, prompt_ids=prompt_ids)
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_length": 100_000, "max_num_seqs": 64, "max_num_batched_tokens": 8}, "scorer.max_num_batched_tokens"),
        pytest.param({"kv_cache_gib": 1e6}, "scorer.kv_cache_gib", marks=pytest.mark.nightly),
    ],
)
def test_a_failed_start_names_the_scorers_settings(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    engine = engine_by(ModelEngine.vllm, made("own", tmp_path, **settings))

    async def work() -> None:
        try:
            await engine.start()
        finally:
            await engine.close()

    with pytest.raises(PolicyError, match=f"the scorer .* cannot be loaded: .*{said}"):
        asyncio.run(work())


def test_environment_variables_are_looked_up_once_while_it_runs(tiny: Started) -> None:
    """Half of the front end's time per token goes into looking them up."""
    from vllm import envs

    assert envs._is_envs_cache_enabled()
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1", "test_usage_statistics shows what it does"


def test_what_it_runs_on(tiny: Started) -> None:
    """The tiny policy, and this processor as it was measured."""
    hardware = tiny.engine.hardware
    assert hardware is not None
    assert hardware.architecture is not None
    assert hardware.device is not None
    assert parameters(hardware.architecture) == pytest.approx(PARAMETERS, rel=2e-3)  # without the norms
    assert (hardware.device.name, hardware.unknown) == ("1 CPU core", "")
    assert 1e8 < hardware.device.bandwidth < 1e12
    assert 1e8 < hardware.device.flops < 1e14


def test_what_it_is(tiny: Started) -> None:
    assert tiny.engine.max_model_len == 192
    assert tiny.engine.capacity == 256
    assert tiny.engine.policy.endswith("asset@main:float32:cpu:stop_at_answer")
    assert tiny.engine._engine.model_config.seed > 0  # vLLM's default of 0 would draw the same rollouts at every start


def test_it_samples_and_counts(tiny: Started) -> None:
    engine, before = tiny.engine, tiny.engine.work
    short, *_ = tiny.requests(1, batch=0)
    asked = [prompted(short, number, (short.prefix.prompt_ids * LONG_PROMPT)[:LONG_PROMPT]) for number in range(6)]

    async def work() -> list[Completion]:
        done = await tiny.sampled(asked)
        # Six of 256 slots were taken.
        unfilled = engine.work.unfilled_seconds
        await asyncio.sleep(0.1)
        assert unfilled > before.unfilled_seconds
        assert engine.work.unfilled_seconds >= unfilled + 0.1
        return done

    done = tiny.loop.run(work())
    assert {completion.request.request_id for completion in done} == {request.request_id for request in asked}
    for completion in done:
        assert 0 < completion.n_tokens == len(completion.token_ids) <= MAX_TOKENS
        assert (completion.finish is Finish.LENGTH) == (
            completion.n_tokens == MAX_TOKENS and completion.finish is not Finish.STOP
        )
        assert completion.text == engine.tokenizer.decode(completion.token_ids)
    assert len({completion.text for completion in done}) > 1
    assert engine.work.generated - before.generated == sum(completion.n_tokens for completion in done)
    assert engine.work.prompt - before.prompt == 6 * LONG_PROMPT
    # Of each prompt after the first one, less than two blocks of 32 tokens are computed.
    assert 0 < engine.work.prefilled - before.prefilled < LONG_PROMPT + 5 * 33


def test_it_stops_at_the_answer(tiny: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FirstLine, "asked", True)
    done = tiny.loop.run(tiny.sampled(tiny.requests(6, batch=1)))
    for completion in done:
        assert completion.text.count("\n") <= 1
        assert completion.text == tiny.engine.tokenizer.decode(completion.token_ids)
    stopped = [completion for completion in done if completion.text.endswith("\n")]
    assert len(stopped) > 2
    assert {completion.finish for completion in stopped} == {Finish.STOP}


def test_requests_with_stop_texts_and_limits_stand_among_others(tiny: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    root, *_ = tiny.requests(1, batch=20)
    ways: list[dict[str, Any]] = [
        {},
        {"stop": ("\n",)},
        {"stop": ("=", "\n")},
        {"max_tokens": 3},
        {"max_tokens": 10_000},
    ]
    asked = [
        replace(root, request_id=rollout_id(f"2{way}", number), **own)
        for number in range(40)
        for way, own in enumerate(ways)
    ]
    done = {each.request.request_id: each for each in tiny.loop.run(tiny.sampled(asked))}
    texts = {way: [done[rollout_id(f"2{way}", number)] for number in range(40)] for way in range(len(ways))}
    decode = tiny.engine.tokenizer.decode
    assert all(each.text == decode(each.token_ids) for some in texts.values() for each in some)
    assert any(each.text.count("\n") > 1 for each in texts[0])
    for way, stops in ((1, ("\n",)), (2, ("=", "\n"))):
        for each in texts[way]:
            assert all(stop not in each.text[:-1] for stop in stops)
            assert each.finish is Finish.STOP or each.n_tokens == MAX_TOKENS
        assert sum(each.text.endswith(stops) for each in texts[way]) > 30
    assert sum(each.text.endswith("=") for each in texts[2]) > 20
    assert max(each.n_tokens for each in texts[3]) == 3
    assert {each.finish for each in texts[3] if each.n_tokens == 3} == {Finish.LENGTH}
    assert 3 < max(each.n_tokens for each in texts[4]) <= MAX_TOKENS

    monkeypatch.setattr(tiny.engine, "_params", {})
    monkeypatch.setattr(tiny.engine._sampling, "stop", ["="])
    with_settings = tiny.loop.run(tiny.sampled([replace(each, request_id=f"3{each.request_id}") for each in asked]))
    assert all("=" not in each.text[:-1] for each in with_settings)
    of_newline = [each.text for each in with_settings if each.request.stop == ("\n",)]
    assert all(not {"=", "\n"} & {*text[:-1]} for text in of_newline)
    assert sum(text.endswith("=") for text in of_newline) > 20


def test_a_completion_where_the_policy_ended_its_turn_does_not_end_with_a_stop_text(tiny: Started) -> None:
    root, *_ = tiny.requests(1, batch=21)
    ids = (*root.prefix.prompt_ids, *tiny.engine.tokenizer.encode("21+5=26\n26*2=52\n52-38=14\n"))
    asked = [replace(prompted(root, number, ids), stop=("\n",)) for number in range(8)]
    done = tiny.loop.run(tiny.sampled(asked))
    assert {each.finish for each in done} == {Finish.STOP}
    assert sum(each.text == "#14" for each in done) > 4


def test_a_limit_is_what_the_context_leaves(tiny: Started) -> None:
    root, *_ = tiny.requests(1, batch=22)
    long = (root.prefix.prompt_ids * 192)[:188]
    done = tiny.loop.run(tiny.sampled([prompted(root, 900 + number, long) for number in range(20)]))
    assert max(each.n_tokens for each in done) == 4
    assert {each.finish for each in done if each.n_tokens == 4} <= {Finish.LENGTH, Finish.STOP}


def test_prompts_that_it_refuses_stand_among_others_that_are_served(tiny: Started) -> None:
    """Too long, of tokens that do not exist, and empty."""
    good = tiny.requests(2, batch=2)
    bad = [prompted(good[0], number, ids) for number, ids in enumerate([(1,) * 5000, (10**9, 1), (-1,), ()])]
    done = {completion.request.request_id: completion for completion in tiny.loop.run(tiny.sampled([*bad, *good]))}
    assert len(done) == len(bad) + len(good)
    for request in bad:
        completion = done[request.request_id]
        assert (completion.finish, completion.text, completion.n_tokens) == (Finish.ENGINE_FAILED, "", 0)
    assert all(done[request.request_id].n_tokens > 0 for request in good)


def test_two_tokens_are_read_as_transformers_reads_them(tiny: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """What scorers ask of causal models, of the engine that is there."""
    from transformers import AutoModelForCausalLM

    ids = [*tiny.requests(1, batch=23)[0].prefix.prompt_ids, *tiny.engine.tokenizer.encode("21+5=26\n26*2=52\n") * 4]
    pair = (tiny.engine.tokenizer.encode("1")[0], tiny.engine.tokenizer.encode("2")[0])
    at = (len(ids) // 2, len(ids) - 1)
    with torch.no_grad():
        logits = AutoModelForCausalLM.from_pretrained(ASSET, dtype=torch.float32)(torch.tensor([ids])).logits[0]
    policy = as_type(tiny.config.policy, HfConfig)
    reader = TokenReader(policy, name=policy.model, model=policy.model, pair=pair, cpus=1)
    reader._loaded = tiny.engine._loaded
    monkeypatch.setattr(reader._loaded, "load", lambda *_, **__: None)

    async def work() -> None:
        await reader.start()
        for turn in range(2):
            found = await reader.read(ids, at)
            assert found is not None
            known = logits.log_softmax(-1)[list(at)][:, list(pair)]
            assert torch.allclose(torch.tensor(found.rows), known, atol=1e-3)
            # From the second time on, all but the last block of 32 tokens is in the cache.
            assert found.computed <= (32 * len(at) if turn else 2 * len(ids))
        assert await reader.read((1,) * 5000, (4999,)) is None

    tiny.loop.run(work())


def test_labels_agree_with_what_2000_rollouts_of_every_prefix_say(tiny: Started, tmp_path: Path) -> None:
    """The whole real path on the tiny policy: tokeniser, vLLM, checker and estimator."""
    run_dir = tmp_path / "run"
    asked = ["estimator=pooled", f"data.path={TRUTH}", f"run_dir={run_dir}"]
    done = label_in_process(compose_label([*OVERRIDES, *asked]), engine=tiny.engine, run=tiny.loop.run)
    known = truth()
    found = shown(pl.read_parquet(run_dir / "labels" / "*.parquet"))
    assert implausible(found, known) == []

    log, totals = pl.read_parquet(run_dir / "rollouts" / "*.parquet"), done.totals
    assert found.correct.sum() == (log["verdict"] == "correct").sum() == totals.correct
    assert found.graded.sum() == totals.correct + totals.incorrect + totals.no_answer
    assert found.graded.sum() + totals.ungraded == log.height == totals.rollouts
    assert found.tokens.sum() == log["n_tokens"].sum() == totals.tokens

    report = audit(AuditConfig(run_dir=str(run_dir)))
    assert report.sound, report.findings


def test_it_counts_while_it_works_and_what_it_aborts_unasked_is_no_completion(tiny: Started) -> None:
    """vLLM aborts requests at its shutdown. Their outputs are incomplete."""
    asked = tiny.requests(200, batch=3)

    async def work() -> None:
        before = tiny.engine.work.generated
        task = asyncio.create_task(tiny.sampled(asked))
        first = await tiny.generated_until(task, before + 1)
        assert before < first < await tiny.generated_until(task, first + 2 * len(asked))
        await tiny.engine._engine.abort([request.request_id for request in asked])
        with pytest.raises(EngineDied, match="finish_reason=abort"):
            await task

    tiny.loop.run(work())


def test_requests_with_seeds_are_sampled_alike_again(tiny: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    def texts(number: int, **own: Any) -> list[str]:
        monkeypatch.setattr(tiny.engine._config, "request_seed", number)
        done = tiny.loop.run(tiny.sampled([replace(each, **own) for each in tiny.requests(12, batch=5)]))
        return [completion.text for completion in sorted(done, key=lambda completion: completion.request.request_id)]

    first = texts(1)
    assert len(set(first)) > 1
    assert texts(1) == first
    assert texts(2) != first
    assert texts(1, stop=("\n",)) == [text.splitlines(keepends=True)[0] for text in first]


def test_its_death_is_noticed_and_explained(tiny: Started) -> None:
    for pid in processes_to_end(tiny.mark):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(EngineDied, match=KILLED):
        tiny.loop.run(tiny.sampled(tiny.requests(2, batch=4)))


async def silent(*_: object) -> AsyncIterator[object]:
    """A request that vLLM leaves waiting. The first ones wait so for the engine's tasks, if it dies before it answers."""
    await asyncio.Event().wait()
    yield None


def test_its_death_is_noticed_if_its_requests_never_hear_of_it(tiny: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny.engine._engine, "generate", silent)
    monkeypatch.setattr("pipeline.engines.vllm.loaded.DEATH_SECONDS", 0.05)
    with pytest.raises(EngineDied, match=KILLED):
        tiny.loop.run(asyncio.wait_for(tiny.sampled(tiny.requests(2, batch=6)), timeout=60))


@pytest.mark.nightly
def test_labels_of_long_chains_agree_with_their_truth_too(tmp_path: Path) -> None:
    """On an engine of its own."""
    run_dir = tmp_path / "run"
    asked = ["estimator=pooled", f"data.path={LONG.truth}", f"run_dir={run_dir}"]
    config = compose_label([*LONG.overrides, *asked])
    policy = as_type(config.policy, HfConfig)
    engine = LastingEngine(policy, config.sampling, name=policy.model, model=lambda: policy.model, cpus=1)
    with asyncio.Runner() as loop:
        loop.run(engine.start())
        try:
            label_in_process(config, engine=engine, run=loop.run)
        finally:
            loop.run(engine.end())
    found = shown(pl.read_parquet(run_dir / "labels" / "*.parquet"), LONG)
    assert implausible(found, truth(LONG)) == []


def test_the_embedded_model_has_135_million_parameters() -> None:
    architecture = architecture_of(json.loads((embedded_model() / "config.json").read_text()))
    assert architecture is not None
    assert parameters(architecture) == pytest.approx(134.5e6, rel=1e-3)


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


@pytest.mark.nightly
def test_the_whole_job_with_a_real_model(tmp_path: Path) -> None:
    """Given chains, a chain without a stated answer, a problem alone, and real GSM8K rows if available."""
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
    few = ["sampling.rollouts=2", "sampling.solutions=2", "sampling.max_tokens=48"]
    settings = ["estimator=fixed", *few, "run.report=false"]
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
    for row in drawn.iter_rows(named=True):  # the end of the turn is sampled, but is not part of the chain
        assert len(row["token_ids"]) - row["token_ends"][-1] == (row["finish"] == "stop")
