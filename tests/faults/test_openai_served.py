"""`policy=openai` against a real vLLM server on this machine, which serves the tiny policy and is killed in a run."""

import asyncio
import json
import re
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pipeline.analysis.audit.run import audit
from pipeline.config.changes import AuditConfig
from pipeline.config.fields import as_type
from pipeline.config.label import LabelConfig
from pipeline.core.ids import rollout_id
from pipeline.core.records import Completion, Finish, Prefix, Problem, Request
from pipeline.data.prompts import Prompter
from pipeline.engines.hugging_face import HfTokenizer, load_tokenizer
from pipeline.engines.openai.engine import OpenAiEngine
from pipeline.engines.settings import OpenAiPolicyConfig
from tests.checkout import stepvalue
from tests.faults.vllm_server import KEY, NAME, VllmServer, serving
from tests.settings import compose_label
from tests.tiny.compared import implausible, shown, truth
from tests.tiny.policy import ASSET, OVERRIDES, TRUTH

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.model,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),
]

CONTEXT = 192
OF_THE_OTHER_ENGINE = ("policy=hf", "policy.model=", "policy.dtype=", "policy.max_num_seqs=")
ASKED = [
    *(setting for setting in OVERRIDES if not setting.startswith(OF_THE_OTHER_ENGINE)),
    "policy=openai",
    f"policy.model={NAME}",
    f"policy.tokenizer={ASSET}",
    "run.report=false",
]
_UNDER_WAY = re.compile(r"rollouts [1-9]")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    with serving(tmp_path_factory.mktemp("server") / "log") as made:
        yield made


def label(server: VllmServer, run_dir: Path, output: Path, *settings: str) -> "subprocess.Popen[bytes]":
    where = [f"policy.openai.urls=[{server.url}]", f"data.path={TRUTH}", f"run_dir={run_dir}"]
    words = ["label", *ASKED, *where, "run.progress_seconds=0.5", *settings]
    return stepvalue(output, *words, environment={"OPENAI_API_KEY": KEY})


def config_for(server: VllmServer, *settings: str) -> LabelConfig:
    return compose_label([*ASKED, f"policy.openai.urls=[{server.url}]", "data.path=x", "run_dir=x", *settings])


@asynccontextmanager
async def started(server: VllmServer, *settings: str) -> AsyncIterator[tuple[OpenAiEngine, LabelConfig]]:
    config = config_for(server, *settings)
    engine = OpenAiEngine(as_type(config.policy, OpenAiPolicyConfig), config.sampling)
    await engine.start()
    try:
        yield engine, config
    finally:
        await engine.close()


def requests(prefix: Prefix, count: int) -> list[Request]:
    problem = Problem(problem_id=prefix.prefix_id, text="?", golds=("1",))
    return [
        Request(request_id=rollout_id(prefix.prefix_id, index), issue_index=index, problem=problem, prefix=prefix)
        for index in range(count)
    ]


def prompts(tokenizer: HfTokenizer, config: LabelConfig) -> list[tuple[int, ...]]:
    prompter = Prompter(
        tokenizer=tokenizer, config=config.policy.prompt, max_tokens=config.sampling.max_tokens, max_model_len=CONTEXT
    )
    rows = [json.loads(line) for line in TRUTH.read_text().splitlines()]
    problems = [Problem(problem_id=row["problem"], text=row["problem"], golds=("1",)) for row in rows]
    return [prompter.root(problem).prompt_ids for problem in problems]


def test_prompts_are_those_of_the_engine_in_process(server: VllmServer) -> None:
    from vllm.tokenizers import get_tokenizer

    config = config_for(server)
    ours = prompts(load_tokenizer(str(ASSET), None), config)
    assert ours == prompts(HfTokenizer(get_tokenizer(str(ASSET))), config)
    assert len(set(ours)) == len(ours) == 24


def test_what_a_real_server_answers(server: VllmServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def drained(engine: OpenAiEngine, asked: list[Request]) -> dict[str, Completion]:
        found = [each async for batch in engine.generate(asked, keep_tokens=True) for each in batch]
        assert len(found) == len(asked)
        return {each.request.request_id: each for each in found}

    async def work(*settings: str) -> None:
        async with started(server, *settings) as (engine, config):
            assert engine.max_model_len == CONTEXT
            ids = prompts(load_tokenizer(str(ASSET), None), config)[0]
            prefixes = [
                Prefix(prefix_id=name, step_index=0, text="", prompt_ids=prompt)
                for name, prompt in (("good", ids), ("long", ids * 200), ("unknown", (10**6,)), ("empty", ()))
            ]
            good, *bad = (requests(prefix, 4) for prefix in prefixes)
            done = await drained(engine, [*good, *(request for some in bad for request in some)])
            for request in good:
                completion = done[request.request_id]
                assert completion.n_tokens == len(completion.token_ids) > 0
                assert engine.tokenizer.decode(completion.token_ids).startswith(completion.text)
                assert (completion.finish is Finish.STOP) == (completion.n_tokens < config.sampling.max_tokens)
                if config.sampling.stop:
                    assert completion.text.count("=") == completion.text.endswith("=")
            assert {done[each.request_id].finish for some in bad for each in some} == {Finish.ENGINE_FAILED}
            many = requests(prefixes[0], 100)
            sampling = asyncio.create_task(drained(engine, many))
            await asyncio.sleep(0.05)
            engine.abort([each.request_id for each in many[10:]])
            finishes = [done.finish for done in (await sampling).values()]
            assert finishes.count(Finish.ABORT) >= 50
            assert finishes.count(Finish.ABORT) <= 90

    asyncio.run(work())
    asyncio.run(work("policy.openai.choices=3", "sampling.stop=['=']"))


@pytest.mark.parametrize("extensions", [True, False])
def test_a_real_server_ends_completions_at_a_requests_own_stop_texts_and_limit(
    server: VllmServer, monkeypatch: pytest.MonkeyPatch, extensions: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def work() -> list[Completion]:
        settings = (f"policy.openai.extensions={extensions}".lower(), "policy.openai.choices=4")
        async with started(server, *settings) as (engine, config):
            ids = prompts(load_tokenizer(str(ASSET), None), config)[0]
            root = Prefix(prefix_id="root", step_index=0, text="", prompt_ids=ids)
            last = "\n".join(json.loads(TRUTH.read_text().splitlines()[0])["steps"][:-1]) + "\n"
            end = Prefix(prefix_id="end", step_index=3, text=last, prompt_ids=(*ids, *engine.tokenizer.encode(last)))
            asked = [
                *(replace(each, stop=("\n",)) for each in requests(root, 40)),
                *(replace(each, max_tokens=3) for each in requests(replace(root, prefix_id="short"), 8)),
                *(replace(each, stop=("\n",)) for each in requests(end, 8)),
            ]
            found = {each.request.request_id: each async for batch in engine.generate(asked) for each in batch}
            return [found[each.request_id] for each in asked]

    done = asyncio.run(work())
    steps, short, ends = done[:40], done[40:48], done[48:]
    assert all("\n" not in each.text[:-1] for each in steps)
    assert sum(each.text.endswith("\n") and each.finish is Finish.STOP for each in steps) > 30
    assert {(each.n_tokens, each.finish) for each in short} == {(3, Finish.LENGTH)}
    # The policy ends its turn behind the answer.
    assert sum(each.text == "#16" and each.finish is Finish.STOP for each in ends) > 4


def test_labels_from_a_server_agree_with_what_2000_rollouts_say(server: VllmServer, tmp_path: Path) -> None:
    run_dir, output = tmp_path / "run", tmp_path / "output"
    assert label(server, run_dir, output).wait() == 0, output.read_text()
    labels = pl.read_parquet(run_dir / "labels" / "*.parquet")
    assert implausible(shown(labels), truth()) == []
    assert set(labels["policy"]) == {f"{NAME}:openai"}
    report = audit(AuditConfig(run_dir=str(run_dir)))
    assert report.sound, report.findings
    written = [path.read_bytes() for path in (*run_dir.rglob("*"), output) if path.is_file()]
    assert not any(KEY.encode() in content for content in written)
    assert "127.0.0.1" not in (run_dir / "run.json").read_text()


def test_a_run_outlives_its_server_being_killed(server: VllmServer, tmp_path: Path) -> None:
    run_dir, output = tmp_path / "run", tmp_path / "output"
    run = label(server, run_dir, output, "estimator=fixed", "sampling.rollouts=60", "policy.openai.connections=64")
    try:
        while not _UNDER_WAY.search(output.read_text()):
            assert run.poll() is None, output.read_text()
            time.sleep(0.1)
        server.kill()
        time.sleep(1)
        assert run.poll() is None, output.read_text()
        server.start()
        assert run.wait() == 0, output.read_text()
    finally:
        run.kill()
    rollouts = pl.read_parquet(run_dir / "rollouts" / "*.parquet")
    assert rollouts["rollout_id"].n_unique() == rollouts.height
    assert set(rollouts.group_by("prefix_id").len()["len"]) == {60}
    assert set(rollouts["finish"].cast(pl.String)) <= {"stop", "length"}
    assert "replacing a worker" not in output.read_text()
    report = audit(AuditConfig(run_dir=str(run_dir)))
    assert report.sound, report.findings
