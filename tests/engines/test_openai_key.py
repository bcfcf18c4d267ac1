"""The API key of `policy=openai` goes to the server, and into no message."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.label import SamplingConfig
from pipeline.core.errors import EngineDied, PolicyError
from pipeline.engines.openai.http import SECRET_CHARACTERS, Key, key_from
from pipeline.engines.openai.wire import BadAnswer, Wire, contexts, error_text
from pipeline.engines.settings import OpenAiConfig
from tests.engines.openai_engines import drained, engine, in_loop, requests, run, running
from tests.engines.served import Act, Server, served

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_openai")]

KEY = "sk-Very-Secret-0123456789"


def test_the_key_goes_to_the_server_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TEAM_KEY", f" {KEY}\n")
    shown: list[str] = []

    async def work() -> None:
        async with served(Server(key=KEY)) as server, served(Server()) as elsewhere:
            server.elsewhere = f"{elsewhere.url}/completions"
            async with running(server, api_key_env="TEAM_KEY", patience_seconds=0.2) as made:
                assert len(await drained(made, requests(2))) == 2
                assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
                for act in (Act.ERROR, Act.NOT_JSON, Act.REDIRECT, Act.NO_KEY):
                    server.acts.clear()
                    server.misbehave([act] * 1000)
                    assert made._dispatcher is not None
                    made._dispatcher.death = ""
                    with pytest.raises(EngineDied) as death:
                        await drained(made, requests(1))
                    shown.append(str(death.value))
                assert made._dispatcher is not None
                connection = vars(made._dispatcher)["_connection"]
                shown.extend([repr(made), repr(vars(made)), repr(vars(made._dispatcher)), repr(vars(connection))])
            assert elsewhere.headers == []
            monkeypatch.setenv("TEAM_KEY", KEY + "x")
            with pytest.raises(PolicyError, match="Incorrect API key provided: Bearer \\*\\*\\*") as wrong:
                await engine(server, api_key_env="TEAM_KEY").start()
            shown.append(str(wrong.value))

    run(work())
    printed = capfd.readouterr()
    assert all(KEY not in text for text in (*shown, printed.out, printed.err, caplog.text))
    assert "authorised by Bearer ***" in shown[0]
    assert "WelcomeBearer ***" in shown[1]


@in_loop
async def test_no_proxy_of_the_environment_hears_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    async with connections_counted() as (proxy, heard), served(Server(key=KEY)) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy)
            monkeypatch.setenv(name.upper(), proxy)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        async with running(server, api_key_env="TEAM_KEY", patience_seconds=0.2) as made:
            assert len(await drained(made, requests(2))) == 2
        assert server.headers
        assert heard == []


@asynccontextmanager
async def connections_counted() -> AsyncIterator[tuple[str, list[object]]]:
    """The address of a listener on the loopback interface, and who has connected to it."""
    heard: list[object] = []

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(writer.get_extra_info("peername"))
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", heard


def escaped(text: str, ways: list[int]) -> str:
    """The content of a JSON text, with each character written in the way of its turn."""
    forms = [lambda c: json.dumps(c)[1:-1], lambda c: f"\\u{ord(c):04x}", lambda c: f"\\u{ord(c):04X}"]
    return "".join(forms[ways[at % len(ways)]](character) for at, character in enumerate(text))


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=SECRET_CHARACTERS, max_size=24),
    st.lists(st.integers(0, 2), min_size=1, max_size=5),
    st.integers(0, 2),
)
def test_a_key_is_masked_however_json_writes_it(value: str, ways: list[int], levels: int) -> None:
    said = f'"before {escaped(value, ways)} after"'
    for _ in range(levels):
        said = json.dumps(said)
    masked = Key(value).redact(said.encode()).decode()
    for _ in range(levels + 1):
        masked = json.loads(masked)
    assert masked == "before *** after"


BETWEEN = (
    " ", "\n", "\x00", "\x1b", "\x7f", "\u00a0", "\u00ad", "\u0301", "\u200b", "\u202f", "\u3000", "\ue000",
    "\U00016fe4", "é",
)  # fmt: skip


@given(st.lists(st.sampled_from(BETWEEN), min_size=1, max_size=4), st.integers(1, 9), st.booleans(), st.integers(0, 2))
def test_a_key_that_is_split_is_masked(inside: list[str], every: int, as_ascii: bool, levels: int) -> None:
    parts = [KEY[at : at + every] for at in range(0, len(KEY), every)]
    text = f"{''.join(inside)}before {''.join(inside).join(parts)} after\u200b"
    said, masked = text, ""
    for _ in range(levels + 1):
        said = json.dumps(said, ensure_ascii=as_ascii)
    masked = Key(KEY).redact_if_secret(said.encode()).decode()
    for _ in range(levels + 1):
        masked = json.loads(masked)
    assert masked == f"{''.join(inside)}before *** after\u200b"
    assert Key(KEY).redact(text.encode()).decode() == masked


def test_a_split_key_is_in_no_message_and_in_no_completion() -> None:
    text = f"Bearer {chr(0x200B).join(KEY)}"
    assert error_text(Key(KEY).redact(json.dumps({"error": {"message": text}}).encode())) == "Bearer ***"
    raw = json.dumps({"choices": [{"text": text, "finish_reason": "stop"}], "model": "m"}).encode()
    answer = Wire("m", SamplingConfig(max_tokens=16), extensions=False).answer(Key(KEY).redact_if_secret(raw), 1)
    assert answer.choices[0].text == "Bearer ***"


def test_texts_without_the_key_stay_as_they_are() -> None:
    said = json.dumps(["sk-Very", "\\u0073k", "é\n" * 100_000]).encode()
    assert Key(KEY).redact(said) == said


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig"]
)
def test_an_answer_in_another_encoding_shows_no_key(encoding: str) -> None:
    """`json.loads` of bytes reads all of them."""
    for document in ({"error": {"message": f"bad key {KEY}"}}, {"data": [{"id": KEY}]}, [KEY], KEY):
        raw = json.dumps(document).encode(encoding)
        shown = error_text(Key(KEY).redact(raw))
        with pytest.raises(BadAnswer) as refused:
            contexts(Key(KEY).redact_if_secret(raw))
        for text in (shown, str(refused.value)):
            assert KEY not in text.replace(" ", "")


@pytest.mark.parametrize("placeholder", ["1", "text", "EMPTY"])
def test_a_placeholder_for_a_key_is_taken_out_of_no_answer(monkeypatch: pytest.MonkeyPatch, placeholder: str) -> None:
    async def answers() -> list[tuple[str, str]]:
        async with running(Server()) as made:
            done = await drained(made, requests(20))
            return sorted((each.request.request_id, each.text) for each in done)

    without = run(answers())
    monkeypatch.setenv("OPENAI_API_KEY", placeholder)
    assert run(answers()) == without


@pytest.mark.parametrize("value", ["", "two words", "Schlüssel", "a\x00b"])
def test_a_key_that_is_none_is_reported_without_showing_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    environment = {"TEAM_KEY": value}
    with pytest.raises(PolicyError) as printed:
        key_from(environment, OpenAiConfig(api_key_env="TEAM_KEY"))
    assert "TEAM_KEY" in str(printed.value)
    assert not value or value not in str(printed.value)
    assert key_from({}, OpenAiConfig()).headers() == {}
