"""Dicts that choose an implementation and its settings are what the command line takes as an option."""

from typing import Any

import pytest

from pipeline.__main__ import compose_label
from pipeline.cli.label import LABEL
from pipeline.cli.stored import RELABEL
from pipeline.core.errors import UsageError
from pipeline.estimators.registry import ESTIMATORS
from pipeline.python.overrides import format_settings, overrides_of, settings_in, with_options

pytestmark = pytest.mark.slow


def overrides(**settings: Any) -> list[str]:
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
    assert compose_label(["data.path=x", *overrides(**settings)]) == compose_label(["data.path=x", *line])


@pytest.mark.parametrize("name", ESTIMATORS.ours)
def test_an_estimator_comes_with_the_defaults_of_its_option(name: str) -> None:
    made = compose_label(["data.path=x", *overrides(estimator={"name": name})])
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
