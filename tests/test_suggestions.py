"""Guesses in error messages: a near miss in spelling, the last part of a dotted key, initials; else none."""

import pytest

from pipeline.cli import COMMANDS
from pipeline.cli.reference import command_settings
from pipeline.core.suggestions import MOST_GUESSES, MOST_NAMES, NEAREST_NAMES, choice_hint, nearest_keys

LABEL, TRAIN, RELABEL, EXPORT = (
    [setting.key for _, found in command_settings(COMMANDS[name]) for setting in found]
    for name in ("label", "train", "relabel", "export")
)


@pytest.mark.parametrize(
    ("key", "keys", "guesses"),
    [
        ("rule", LABEL, ["estimator.rule"]),
        ("grader.rule", LABEL, ["estimator.rule"]),
        ("openai.urls", LABEL, ["policy.openai.urls"]),
        ("sampling.rolouts", LABEL, ["sampling.rollouts"]),
        ("samplng.rolouts", LABEL, ["sampling.rollouts"]),
        ("max_token", LABEL, ["sampling.max_tokens"]),
        ("inptu", ["output", "input"], ["input"]),
        ("lr", TRAIN, ["learning_rate"]),
        ("wd", TRAIN, ["weight_decay"]),
        ("warmup", TRAIN, ["warmup_ratio"]),
        ("learning_rat", TRAIN, ["learning_rate"]),
        ("estimator.target_sd", RELABEL, []),
        ("lr", EXPORT, []),
        ("rul", ["run", "layers"], []),
        ("zzz", LABEL, []),
        ("x", LABEL, []),
        ("a", ["b.a", "c.a", "d.a", "e.a"], ["b.a", "c.a", "d.a"]),
    ],
)
def test_the_nearest_keys(key: str, keys: list[str], guesses: list[str]) -> None:
    assert nearest_keys(key, ["run", "estimator", *keys]) == guesses
    assert len(guesses) <= MOST_GUESSES


def test_a_hint_begins_with_the_near_name_and_has_all_names() -> None:
    assert choice_hint("poold", ["fixed", "pooled"]) == "did you mean pooled? There are fixed, pooled"
    assert choice_hint("best", ["bisect", "fixed"]) == "choose from bisect, fixed"


def test_a_single_name_is_named_once() -> None:
    assert choice_hint("jbo", ["job"]) == "choose from job"
    assert choice_hint("joob", ["job"]) == "did you mean job?"


def test_of_many_names_only_the_nearest_are_listed() -> None:
    names = ["label", "labels", "labelling", "chain_id", "problem_id", *(f"other{n}" for n in range(MOST_NAMES))]
    assert choice_hint("lable", names).startswith("did you mean label? The nearest of the 29 names are label, labels, ")
    far = choice_hint("xyz", names)
    assert far.startswith("the nearest of the 29 names are ")
    assert far.count(", ") == NEAREST_NAMES - 1
