"""`policy=openai` at the start: wrong settings and unsuitable servers are reported before any work."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.core.errors import PolicyError
from pipeline.engines.openai import engine as engine_module
from pipeline.engines.oracle import ByteTokenizer
from tests.engines.openai_engines import engine, in_loop, run, running
from tests.engines.served import CONTEXT, MODEL, Act, Server, served

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_openai")]


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
