"""Every input line gives exactly one output line, with its other keys unchanged."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import Grade, Verdict
from pipeline.graders.lines import OURS, Result, finish_line, gold_error, read_case, summary
from tests import strategies

GRADE = Grade(verdict=Verdict.CORRECT, answer="5", ms=0.123456)
NESTED = 900

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | strategies.texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strategies.texts, inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["gold", "prediction", "extracts", "id", *OURS]) | st.text(st.characters(), max_size=5)
objects = st.dictionaries(keys, values, max_size=6)


def one_line(result: Result) -> dict[str, Any]:
    assert result.text.isascii()
    assert result.text.endswith(b"\n")
    assert result.text.count(b"\n") == 1
    fields = json.loads(result.text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert isinstance(fields, dict)
    assert fields["verdict"] == result.verdict
    assert fields.get("error", "") == result.error
    return fields


def answered(line: bytes | None, number: int = 7) -> dict[str, Any]:
    """The output line of an input line that a checker grades as correct."""
    case = read_case(number, line)
    return one_line(finish_line(case, GRADE if case.asked else None))


@given(objects)
def test_any_object_is_one_line_with_its_keys_kept(fields: dict[str, Any]) -> None:
    found = answered(json.dumps(fields).encode())
    assert {name: found[name] for name in found if name not in OURS} == {
        name: value for name, value in fields.items() if name not in OURS
    }
    assert (found["verdict"] is None) == (found["answer"] is None) == (found["ms"] is None)


@given(st.binary() | values.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_one_line(line: bytes) -> None:
    found = answered(line)
    assert found["verdict"] is not None or found["error"].startswith("line 7: ")


def test_the_verdict_stands_behind_what_was_there() -> None:
    found = answered(b'{"id": 1, "gold": "5", "prediction": "so 5", "verdict": "old", "error": "old", "answer": 3}')
    assert list(found.items()) == [
        ("id", 1), ("gold", "5"), ("prediction", "so 5"), ("verdict", "correct"), ("answer", "5"), ("ms", 0.1235),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (None, "longer than 67,108,864 bytes; shorten or split it"),
        (b'{"gold": "\xff"}', "is not UTF-8 (invalid start byte); save the file as UTF-8"),
        (b'{"gold": 5', "not JSON at column 11"),
        (b'{"gold": ' + b"9" * 5000 + b"}", "an integer of more than 4,300 digits; write it as a text or shorten it"),
        (b"[" * 200_000, "nests lists or objects too deeply; nest them less deeply"),
        (b"[1]", "list; it must be an object"),
        (b"{}", 'no "gold" among its keys (it has none); give the known answer'),
        (b'{"golds": 5, "prediction": "5"}', "no \"gold\" among 'golds', 'prediction'; give the known answer"),
        (b'{"gold": null, "prediction": "5"}', "the gold is null; give the known answer"),
        (b'{"gold": 5, "predicted": "5"}', "no \"prediction\" among 'gold', 'predicted'; give the model's output"),
        (b'{"gold": 5, "prediction": ["5"]}', "the prediction is of type list; give"),
        (b'{"gold": 5, "prediction": true}', "the prediction is of type bool; give"),
        (b'{"gold": 5, "prediction": "5", "extracts": "false"}', '"extracts" must be true'),
    ],
    ids=lambda value: ascii(value)[:50],
)
def test_a_line_that_asks_nothing_says_its_number_what_is_wrong_and_what_to_do(line: bytes | None, said: str) -> None:
    found = answered(line)
    assert found["verdict"] is found["answer"] is found["ms"] is None
    assert found["error"].startswith("line 7: ")
    assert said in found["error"]


@pytest.mark.parametrize("gold", ["", " ", [], [[5]], {"a": 1}, True, [None], ["5", ""]], ids=repr)
def test_a_gold_that_nothing_can_be_compared_with_is_named(gold: Any) -> None:
    case = read_case(3, json.dumps({"gold": gold, "prediction": "5"}).encode())
    assert case.asked is not None
    assert case.asked.golds == ()
    assert case.error.startswith("line 3: no answer can be compared with this gold; give the known answer")


def test_a_line_of_many_keys_names_some() -> None:
    found = answered(json.dumps({f"key-{number}" + "x" * 100: 1 for number in range(50)}).encode())
    assert "'key-7" in found["error"]
    assert "key-8" not in found["error"]
    assert len(found["error"]) < 600


def test_settings_of_a_line() -> None:
    bare = read_case(1, b'{"gold": [1, "2"], "prediction": 2.0, "extracts": false}').asked
    assert bare is not None
    assert (bare.golds, bare.text, bare.extracts) == (("1", "2"), "2", False)
    whole = read_case(1, b'{"gold": 1, "prediction": null}').asked
    assert whole is not None
    assert (whole.golds, whole.text, whole.extracts) == (("1",), None, True)


@pytest.mark.parametrize(
    "other", [b"NaN", b"-Infinity", b"1e999", b"[" * NESTED + b"]" * NESTED], ids=["nan", "infinity", "1e999", "deep"]
)
def test_a_key_that_json_cannot_write_does_not_cost_the_verdict(other: bytes) -> None:
    found = answered(b'{"gold": "5", "prediction": "5", "other": ' + other + b"}")
    assert found["verdict"] == "correct"
    assert "other" not in found or found["other"] == json.loads(other)
    assert ("other" in found) != ("left out" in found.get("error", ""))


def test_hostile_texts_survive() -> None:
    for prediction in ("\ud800", "\0", "x" * 1_000_000, "\u2028\u202e", "\\boxed{" * 10_000):
        assert answered(json.dumps({"gold": "5", "prediction": prediction}).encode())["prediction"] == prediction


def test_an_unread_gold_is_named_in_ascii() -> None:
    error = gold_error(read_case(4, b'{"gold": "x+", "prediction": "5"}'), ["x+", "\ud800" * 1000])
    assert error.startswith("line 4: the gold 'x+', '\\ud800")
    assert error.isascii()
    assert len(error) < 700


def test_the_summary_adds_up_and_names_only_what_occurred() -> None:
    verdicts = {Verdict.CORRECT: 1200, Verdict.TIMEOUT: 2, None: 3}
    said = "1,205 lines in 2.0 s: 1,200 correct, 0 incorrect, 0 no_answer, 2 timeout, 3 not usable"
    assert summary(verdicts, 2.04) == said
    assert summary({}, 0.0) == "0 lines in 0.0 s: 0 correct, 0 incorrect, 0 no_answer"
