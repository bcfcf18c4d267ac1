"""The runs of a sweep: what `label --multirun` makes of a command line, in order, and the name of each one's folder.

Hydra's grammar says which settings have several values: `a,b`, `choice(a,b)`, `range(1,5)`. A text in quotes and a list are one
value. The first setting varies slowest.

A name says what its run has: `estimator.threshold=0.3,sampling.temperature=0.7`. It depends on these values alone, so that a
sweep with more values finds the runs of an earlier one. Other characters than LETTERS are replaced; the name then ends with a
hash, so that no two runs have the same one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import prod
from typing import Any

from pipeline.config.words import quote
from pipeline.core.errors import UsageError
from pipeline.core.ids import content_id

MOST_RUNS = 256
MOST_NAME = 120
"""Characters of a name, which is a part of a path."""
LETTERS = r"A-Za-z0-9._+\-"
_OTHERS = re.compile(f"[^{LETTERS}]+")
_WORD = re.compile(r"[A-Za-z_][\w./:+-]*")
_DIGITS = 8
_ONE_FOR_ALL: Mapping[str, str] = {
    "run_dir": "each run has a folder of its own in it",
    "budget": "a plan is for one run: plan and label with it one run after the other",
    "cluster.address": "all runs of a sweep use one cluster",
}
"""Settings that a sweep cannot vary, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """A run of a sweep. `name`: of its folder. `values`: swept setting -> its value. `overrides`: its command line."""

    name: str
    values: Mapping[str, str]
    overrides: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """A setting with all its values as words of a command line, and the value alone of each if there are several."""

    key: str
    words: tuple[str, ...]
    values: tuple[str, ...] = ()


def combinations(overrides: Sequence[str]) -> list[Combination]:
    """The runs that a command line names. Raises UsageError for one without a sweep, with too many runs, or that names a run
    twice."""
    settings = [_setting(text) for text in overrides]
    swept = [each.key for each in settings if each.values]
    for key in swept:
        if (reason := _ONE_FOR_ALL.get(key)) is not None:
            raise UsageError(f"{key} has one value in a sweep: {reason}")
        if sum(each.key == key for each in settings) > 1:
            raise UsageError(f"{key} is given twice: name all of its values at once, {key}=VALUE,VALUE")
    if not swept:
        raise UsageError(
            "--multirun makes a run for each value of a setting, and no setting has several: separate them with commas, such "
            "as estimator.threshold=0.3,0.5, or leave --multirun out"
        )
    if (runs := prod(len(each.words) for each in settings)) > MOST_RUNS:
        raise UsageError(f"a sweep has at most {MOST_RUNS} runs, and this one has {runs:,} or more: name fewer values")
    found = [
        _combination([(each, at) for each, at in zip(settings, places, strict=True)])
        for places in product(*(range(len(each.words)) for each in settings))
    ]
    names: dict[str, Combination] = {}
    for each in found:
        if each.name in names:
            raise UsageError(f"{said(each.values)} is in the sweep twice: name each value once")
        names[each.name] = each
    return found


def said(values: Mapping[str, str]) -> str:
    """The values of a run, as its command line would give them."""
    return ",".join(f"{key}={value}" for key, value in values.items())


def folder_name(values: Mapping[str, str]) -> str:
    """The name of the folder of a run with these values."""
    name = ",".join(f"{_plain(key)}={_plain(value)}" for key, value in values.items())
    exact = said(values)
    if name == exact and len(name) <= MOST_NAME:
        return name
    digest = content_id("sweep", *(part for pair in values.items() for part in pair))[:_DIGITS]
    # A plain name has no ~ in it.
    return f"{name[: MOST_NAME - _DIGITS - 1]}~{digest}"


def _plain(text: str) -> str:
    return _OTHERS.sub("-", text)


def _setting(text: str) -> _Setting:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        parsed = OverridesParser.create().parse_override(text)
    except HydraException:
        # A text that Hydra cannot read is one value, and `compose` says whether it may be one.
        return _Setting(key=text.partition("=")[0], words=(text,))
    key = parsed.get_key_element()
    if not parsed.is_sweep_override():
        return _Setting(key=key, words=(text,))
    no_values = UsageError(
        f"{text} names no single values: write them down, {key}=VALUE,VALUE, or as range(START,STOP,STEP)"
    )
    if not parsed.is_discrete_sweep():
        raise no_values
    try:
        values = [_value(element) for element in islice(parsed.sweep_iterator(), MOST_RUNS + 1)]
    except HydraException as error:
        raise no_values from error
    return _Setting(
        key=key.removeprefix("+"),
        words=tuple(f"{key}={written}" for written, _ in values),
        values=tuple(text for _, text in values),
    )


def _value(element: Any) -> tuple[str, str]:
    """A value as a command line gives it, and alone. A text is put in quotes unless it is a plain word."""
    from hydra.core.override_parser.types import QuotedString, Transformer

    if isinstance(element, str):
        return element if _WORD.fullmatch(element) else quote(element), element
    if isinstance(element, QuotedString):
        return quote(element.text), element.text
    written = str(Transformer.encode(element))
    return written, written


def _combination(chosen: Sequence[tuple[_Setting, int]]) -> Combination:
    values = {each.key: each.values[at] for each, at in chosen if each.values}
    return Combination(name=folder_name(values), values=values, overrides=tuple(each.words[at] for each, at in chosen))
