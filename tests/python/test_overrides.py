"""Settings of a Python call mean on the command line what they meant in Python."""

from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from pipeline.__main__ import compose_label
from pipeline.core.errors import UsageError
from pipeline.python.overrides import overrides_of, policy_overrides

PARSER = OverridesParser.create()
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = SCALARS | st.lists(SCALARS, max_size=4)


class Colour(Enum):
    red = "red"


def read(override: str) -> Any:
    return PARSER.parse_override(override).value()


def plain(value: Any) -> Any:
    """Without the marks that Hydra puts around texts in quotes."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return getattr(value, "text", value)


@given(VALUES)
def test_every_value_comes_back(value: object) -> None:
    (override,) = overrides_of({"key": value})
    assert plain(read(override)) == value


@given(
    st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from("xyz"), SCALARS, min_size=1), min_size=1)
)
def test_nested_settings_and_dotted_keys_are_the_same(nested: dict[str, dict[str, object]]) -> None:
    dotted = {f"{outer}.{inner}": value for outer, part in nested.items() for inner, value in part.items()}
    assert overrides_of(nested) == overrides_of(dotted)


def test_other_types_are_written_as_what_they_hold() -> None:
    values = {"a": Path("/x y/z"), "b": Colour.red, "c": np.float64(0.5), "d": np.int32(3), "e": (1, "two")}
    assert [plain(read(line)) for line in overrides_of(values)] == ["/x y/z", "red", 0.5, 3, [1, "two"]]


@pytest.mark.parametrize(
    "settings", [{"a b": 1}, {"": 1}, {"policy": {"model=x": 1}}, {"a.": 1}, {1: 2}, {"_target_()": 1}]
)
def test_what_is_no_name_of_a_setting_is_refused(settings: Any) -> None:
    with pytest.raises(UsageError, match="is no name of a setting"):
        overrides_of(settings)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", [object()], lambda: 1])
def test_a_value_of_another_type_is_refused_by_its_key(value: object) -> None:
    with pytest.raises(UsageError, match=r"sampling\.temperature: a setting is text"):
        overrides_of({"sampling": {"temperature": value}})


@pytest.mark.parametrize(("policy", "key", "value"), [
    ("oracle", "kind", "oracle"), ("embedded", "kind", "embedded"), ("org/name", "model", "org/name"),
    (Path("/models/a b"), "model", "/models/a b"), ({"model": "org/name"}, "model", "org/name"),
])  # fmt: skip
def test_a_policy_is_an_option_a_model_or_settings(policy: Any, key: str, value: str) -> None:
    options = ["embedded", "hf", "openai", "oracle"]
    overrides = overrides_of({"data.path": "x.jsonl", **policy_overrides(policy, options)})
    assert getattr(compose_label(overrides).policy, key) == value
