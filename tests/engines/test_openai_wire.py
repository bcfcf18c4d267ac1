"""Valid and invalid answers of a completions server, the requests to it, what statuses mean, and how long pauses are."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.label import SamplingConfig
from pipeline.core.records import Finish
from pipeline.engines.openai.wire import (
    Answer,
    BadAnswer,
    Choice,
    ErrorKind,
    Wire,
    contexts,
    error_kind,
    error_text,
    pause,
    printable_value,
    retry_after_seconds,
)

GOOD = {"index": 0, "text": "4", "finish_reason": "stop", "token_ids": [4]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def wire(*, extensions: bool = True, **sampling: Any) -> Wire:
    return Wire("m", SamplingConfig(**{"max_tokens": 8, **sampling}), extensions=extensions)


def answer(**changes: object) -> bytes:
    return json.dumps({"model": "m", "choices": [GOOD], **changes}).encode()


def test_a_request_says_all_that_shapes_the_policy() -> None:
    asked = json.loads(wire(temperature=0.5, top_p=0.9, top_k=7, min_p=0.1, stop=["\n\n"]).body((1, 2, 3), 2))
    assert asked == {
        "model": "m", "prompt": [1, 2, 3], "n": 2, "max_tokens": 8, "temperature": 0.5, "top_p": 0.9, "top_k": 7,
        "min_p": 0.1, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "stop": ["\n\n"],
        "include_stop_str_in_output": True, "no_stop_trim": True, "skip_special_tokens": True, "return_token_ids": True,
        "stream": False,
    }  # fmt: skip
    assert json.loads(wire().body((1,), 1))["top_k"] == -1
    assert json.loads(wire(temperature=0.0).body((1,), 1))["temperature"] == 0


def test_a_request_may_have_further_stop_texts_and_a_limit_of_its_own() -> None:
    asked = json.loads(wire(stop=["x"]).body((1,), 1, max_tokens=3, stop=("\n", "y")))
    assert (asked["stop"], asked["max_tokens"], asked["no_stop_trim"]) == (["x", "\n", "y"], 3, True)
    asked = json.loads(wire().body((1,), 1, stop=("\n",)))
    assert (asked["stop"], asked["include_stop_str_in_output"]) == (["\n"], True)
    assert not {"stop", "include_stop_str_in_output", "no_stop_trim"} & json.loads(wire().body((1,), 1)).keys()
    asked = json.loads(wire(extensions=False).body((1,), 1, stop=("\n",)))
    assert "stop" in asked
    assert not {"include_stop_str_in_output", "no_stop_trim"} & asked.keys()


@pytest.mark.parametrize("field", ["stop_reason", "matched_stop"])
def test_a_stop_text_that_a_server_names_ends_the_text(field: str) -> None:
    def read(reached: object, text: str = "4") -> str:
        choice = {**GOOD, "text": text, field: reached}
        return wire(stop=["x"]).answer(answer(choices=[choice]), 1, stop=("\n",)).choices[0].text

    assert (read("\n"), read("x"), read("x", "4x"), read("\n", "4\n")) == ("4\n", "4x", "4x", "4\n")
    # The end of a turn, a text that nobody asked for, and what is no text.
    assert {read(reached) for reached in (None, 7, "y", "", ["x"], {"x": 1}, True)} == {"4"}


def test_without_extensions_only_what_openai_knows_is_sent() -> None:
    asked = json.loads(wire(extensions=False, stop=["x"]).body((1,), 1))
    assert set(asked) == {
        "model", "prompt", "n", "max_tokens", "temperature", "top_p", "presence_penalty", "frequency_penalty", "stop", "stream",
    }  # fmt: skip


def test_an_answer_is_read() -> None:
    cut = {"index": 1, "text": "4 or", "finish_reason": "length"}
    usage = {"completion_tokens": 3, "prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 5}}
    assert wire().answer(answer(choices=[GOOD, cut], usage=usage), 2) == Answer(
        choices=(
            Choice(text="4", finish=Finish.STOP, token_ids=(4,)),
            Choice(text="4 or", finish=Finish.LENGTH, token_ids=None),
        ),
        generated=3,
        cached=5,
    )
    assert wire().answer(answer(usage={"prompt_tokens_details": None}), 1).cached is None


def test_what_a_server_filtered_is_no_completion() -> None:
    filtered = wire().answer(answer(choices=[{**GOOD, "finish_reason": "content_filter"}]), 1)
    assert filtered.choices == (Choice(text="", finish=Finish.ENGINE_FAILED, token_ids=()),)


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"<html>", "answer is not JSON: <html>"),
        (b"\xff\xfe", "answer is not JSON"),
        (b"[" * 100_000, "answer is not JSON"),
        (b"9" * 10_000, "answer is not JSON"),
        (b"[]", "the answer is not an object"),
        (answer(model="n\x1b[31m"), "for another model, n [31m"),
        (answer(choices=None), "choices is not a list"),
        (answer(choices=[]), "0 choices for a request of 1"),
        (answer(choices=[GOOD, GOOD]), "2 choices for a request of 1"),
        (answer(choices=["4"]), "a choice is not an object"),
        (answer(choices=[{**GOOD, "text": None}]), "no text"),
        (answer(choices=[{**GOOD, "text": "\ud800"}]), "no text"),
        (answer(choices=[{**GOOD, "finish_reason": None}]), "finish_reason=null"),
        (answer(choices=[{**GOOD, "finish_reason": "abort"}]), "finish_reason=abort"),
        (answer(choices=[{**GOOD, "finish_reason": ["stop"]}]), 'finish_reason=["stop"]'),
        (answer(choices=[{**GOOD, "token_ids": "4"}]), "token_ids is not a list"),
        (answer(choices=[{**GOOD, "token_ids": [True]}]), "values that are not token ids"),
        (answer(choices=[{**GOOD, "token_ids": [-1]}]), "values that are not token ids"),
        (answer(choices=[{**GOOD, "token_ids": [2**40]}]), "values that are not token ids"),
        (answer(choices=[{**GOOD, "token_ids": [4] * 9}]), "9 tokens, more than max_tokens=8"),
        (answer(usage=[]), "usage is not an object"),
        (answer(usage={"completion_tokens": 9}), "completion_tokens is 9"),
        (answer(usage={"completion_tokens": 1.5}), "completion_tokens is 1.5"),
        (answer(usage={"prompt_tokens_details": {"cached_tokens": -1}}), "cached_tokens is -1"),
    ],
)
def test_what_no_server_of_the_model_says_is_named(raw: bytes, fault: str) -> None:
    with pytest.raises(BadAnswer) as shown:
        wire().answer(raw, 1)
    assert fault in str(shown.value)


@given(JSON, st.sampled_from(["model", "choices", "usage"]), st.sampled_from([None, *GOOD]))
def test_whatever_a_server_says_is_an_answer_or_a_bad_one(value: object, key: str, of_choice: str | None) -> None:
    raw = answer(choices=[{**GOOD, of_choice: value}]) if of_choice else answer(**{key: value})
    try:
        read = wire().answer(raw, 1)
    except BadAnswer as error:
        shown = str(error)
    else:
        shown = read.choices[0].text.encode().hex()
        assert len(read.choices) == 1
        assert len(read.choices[0].token_ids or ()) <= 8
    assert shown.isprintable()


@given(st.binary())
def test_bytes_are_no_answer(raw: bytes) -> None:
    with pytest.raises(BadAnswer):
        wire().answer(raw, 1)
    assert printable_value(error_text(raw)) == error_text(raw)


def test_an_answer_with_all_its_tokens_is_within_the_limit() -> None:
    blanks = " " * 128
    most = {
        "text": blanks * 8,
        "finish_reason": "length",
        "token_ids": [151_000] * 8,
        "prompt_token_ids": [151_000] * 500,
    }
    assert len(answer(choices=[most] * 3)) < wire().max_bytes((151_000,) * 500, 3) < 2 * 1024 * 1024


def test_the_models_of_a_server_are_read() -> None:
    shown = {"data": [{"id": "a", "max_model_len": 4096}, {"id": "b"}, {"id": "c", "max_model_len": None}]}
    assert contexts(json.dumps(shown).encode()) == {"a": 4096, "b": None, "c": None}
    faulty: list[Any] = [
        [],
        {"data": None},
        {"data": [{}]},
        {"data": ["a"]},
        {"data": [{"id": "a", "max_model_len": "4k"}]},
    ]
    for wrong in faulty:
        with pytest.raises(BadAnswer):
            contexts(json.dumps(wrong).encode())


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b'{"error": {"message": "no such model"}}', "no such model"),
        (b'{"object": "error", "message": "too long"}', "too long"),
        (b'{"error": "Unauthorized"}', "Unauthorized"),
        (b'{"detail": [{"loc": ["n"]}]}', '[{"loc": ["n"]}]'),
        (b"<b>Bad\n\x1b[31mGateway</b>", "<b>Bad [31mGateway</b>"),
        (b"", ""),
        (b"{}", ""),
    ],
)
def test_what_a_server_complains_of_is_one_plain_line(raw: bytes, shown: str) -> None:
    assert error_text(raw) == shown


@given(st.text())
def test_what_is_shown_is_short_and_plain(text: str) -> None:
    assert len(printable_value(text * 30)) <= 200
    assert printable_value(text).isprintable()


NOON = 1_795_348_800.0  # Sun, 22 Nov 2026 12:00:00 GMT


@pytest.mark.parametrize(
    ("statuses", "kind"),
    [
        ((400, 413, 422), ErrorKind.REFUSED),
        ((429, 503), ErrorKind.BUSY),
        ((408, 409, 425, 500, 504, 599, 418, 204), ErrorKind.FAULT),
        ((401, 403, 404, 302, 307, 502), ErrorKind.GONE),
    ],
)
def test_what_a_status_means(statuses: tuple[int, ...], kind: ErrorKind) -> None:
    assert {error_kind(status) for status in statuses} == {kind}


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ("7", 7),
        (" 0.5 ", 0.5),
        ("0", 0),
        ("100000", 120),
        ("inf", 120),
        ("Sun, 22 Nov 2026 12:00:09 GMT", 9),
        ("Sun, 22 Nov 2026 11:59:00 GMT", None),
        ("Sun, 22 Nov 99999999999 11:59:00 GMT", None),
        ("-1", None),
        ("nan", None),
        ("soon", None),
        ("", None),
    ],
)
def test_how_long_a_server_asks_to_wait(asked: str, seconds: float | None) -> None:
    assert retry_after_seconds({"Retry-After": asked}, NOON) == seconds


@given(st.text())
def test_any_header_is_a_time_within_bounds_or_none(asked: str) -> None:
    seconds = retry_after_seconds({"Retry-After": asked}, NOON)
    assert seconds is None or 0 <= seconds <= 120


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_pauses_double_up_to_a_limit(failures: int, draw: float) -> None:
    longest = min(30.0, 0.5 * 2.0 ** min(failures - 1, 20))
    assert longest / 2 <= pause(failures, draw) <= longest
