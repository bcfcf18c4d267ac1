"""Settings of a Python call mean on the command line what they meant in Python."""

from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cli.label import LABEL
from pipeline.cli.stored import RELABEL
from pipeline.core.errors import UsageError
from pipeline.estimators.registry import ESTIMATORS
from pipeline.python.overrides import format_settings, named_settings, overrides_of, settings_in, with_options
from tests.settings import compose_label

PARSER = OverridesParser.create()
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = SCALARS | st.lists(SCALARS, max_size=4)


class Colour(Enum):
    red = "red"


def overrides(settings: Any) -> list[str]:
    return overrides_of(settings_in(settings))


def read(override: str) -> Any:
    return PARSER.parse_override(override).value()


def plain(value: Any) -> Any:
    """Without the marks that Hydra puts around texts in quotes."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return getattr(value, "text", value)


@given(VALUES)
def test_every_value_comes_back(value: object) -> None:
    (override,) = overrides({"key": value})
    # As text, because True == 1.
    assert repr(plain(read(override))) == repr(value)


@given(
    st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from("xyz"), SCALARS, min_size=1), min_size=1)
)
def test_nested_settings_and_dotted_keys_are_the_same(nested: dict[str, dict[str, object]]) -> None:
    dotted = {f"{outer}.{inner}": value for outer, part in nested.items() for inner, value in part.items()}
    assert overrides(nested) == overrides(dotted)


def test_other_types_are_written_as_what_they_hold() -> None:
    values = {"a": Path("/x y/z"), "b": Colour.red, "c": np.float64(0.5), "d": np.int32(3), "e": (1, "two")}
    assert [plain(read(line)) for line in overrides(values)] == ["/x y/z", "red", 0.5, 3, [1, "two"]]


@pytest.mark.parametrize(
    "settings", [{"a b": 1}, {"": 1}, {"policy": {"model=x": 1}}, {"a.": 1}, {1: 2}, {"_target_()": 1}]
)
def test_what_is_no_name_of_a_setting_is_refused(settings: Any) -> None:
    with pytest.raises(UsageError, match="is no name of a setting"):
        overrides(settings)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", [object()], lambda: 1])
def test_a_value_of_another_type_is_refused_by_its_key(value: object) -> None:
    with pytest.raises(UsageError, match=r"sampling\.temperature: a setting is text"):
        overrides({"sampling": {"temperature": value}})


@pytest.mark.parametrize(("policy", "key", "value"), [
    ("oracle", "kind", "oracle"), ("embedded", "kind", "embedded"), ("org/name", "model", "org/name"),
    (Path("/models/a b"), "model", "/models/a b"), ({"model": "org/name"}, "model", "org/name"),
])  # fmt: skip
def test_a_policy_is_an_option_a_model_or_settings(policy: Any, key: str, value: str) -> None:
    asked = overrides_of([*settings_in({"data.path": "x.jsonl"}), *named_settings({"policy": policy})])
    assert getattr(compose_label(asked).policy, key) == value


@pytest.mark.parametrize(("settings", "first", "second"), [
    ({"sampling": {"temperature": 0.5}, "sampling.temperature": 0.8},
     "sampling={'temperature': 0.5}", "{'sampling.temperature': 0.8}"),
    ({"policy": {"oracle": {"seed": 1}}, "policy.oracle.seed": 2},
     "policy={'oracle': {'seed': 1}}", "{'policy.oracle.seed': 2}"),
    ({"a": {"b": "x" * 100}, "a.b": "y"}, "a={'b': '" + "x" * 53 + "...", "{'a.b': 'y'}"),
])  # fmt: skip
def test_a_setting_with_two_values_is_refused_and_both_are_named(settings: Any, first: str, second: str) -> None:
    with pytest.raises(UsageError) as raised:
        overrides(settings)
    key = next(key for key in settings if "." in key)
    assert str(raised.value) == f"{key} is given twice, as {first} and as {second}: leave one of them out"


def test_a_setting_that_is_given_twice_with_one_value_is_that_setting() -> None:
    assert overrides({"sampling": {"temperature": 0.5}, "sampling.temperature": np.float64(0.5)}) == [
        "sampling.temperature=0.5"
    ]


pytestmark = pytest.mark.slow


def chosen(**settings: Any) -> list[str]:
    return overrides_of(with_options(settings_in(settings), LABEL))


@pytest.mark.parametrize(("settings", "line"), [
    ({"policy": {"kind": "oracle", "oracle": {"seed": 3}}}, ["policy=oracle", "policy.oracle.seed=3"]),
    ({"policy": {"oracle": {"seed": 3}, "kind": "oracle"}}, ["policy=oracle", "policy.oracle.seed=3"]),
    ({"policy": {"kind": "hf", "model": "a/b"}}, ["policy=hf", "policy.model=a/b"]),
    ({"estimator": {"name": "fixed", "rule": "threshold"}}, ["estimator=fixed", "estimator.rule=threshold"]),
    ({"grader": {"kind": "math", "relative_tolerance": 0.05}}, ["grader.relative_tolerance=0.05"]),
    ({"grader": {"kind": "code"}}, ["grader=code"]),
    ({"policy.kind": "oracle"}, ["policy=oracle"]),
])  # fmt: skip
def test_a_dict_is_the_option_with_what_belongs_to_it(settings: dict[str, Any], line: list[str]) -> None:
    assert compose_label(["data.path=x", *chosen(**settings)]) == compose_label(["data.path=x", *line])


@pytest.mark.parametrize("name", ESTIMATORS.ours)
def test_an_estimator_comes_with_the_defaults_of_its_option(name: str) -> None:
    made = compose_label(["data.path=x", *chosen(estimator={"name": name})])
    assert made == compose_label(["data.path=x", f"estimator={name}"])


def test_relabel_keeps_what_a_dict_does_not_name() -> None:
    asked = overrides_of(with_options(settings_in({"estimator": {"name": "pooled"}}), RELABEL))
    assert asked == ["estimator.name='pooled'"]


def test_a_format_comes_with_its_own_settings() -> None:
    name, own = format_settings({"name": "preference", "margin": 0.2})
    assert (name, overrides_of(own)) == ("preference", ["preference.margin=0.2"])
    assert format_settings("trl") == ("trl", [])


@pytest.mark.parametrize(("format", "words"), [
    ({"nam": "trl"}, "does not say which format it is for: add 'name', one of trl"),
    ({"name": "trl", "gap": 1}, "trl has no settings of its own: give gap beside it"),
    ({"name": "tlr"}, "there is no such format here: choose from trl"),
])  # fmt: skip
def test_a_dict_that_is_no_format_is_refused(format: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        format_settings(format)
