"""The result of a comparison of two runs, the settings that differ, and a sentence that summarizes the result. Pure.

The sentence (`verdict`) reports a shift if its interval excludes 0. It also reports changes in both directions that cancel out:
more prefixes beyond noise than expected by chance. If no shift is detected, there may still be one; the sentence then says how
large it can be.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.analysis.compare.frames import Overlap
from pipeline.analysis.compare.shift import Flips, Noise, Shift
from pipeline.config.recorded_settings import SETTING_NAMES, Settings
from pipeline.core.formatting import format_count, format_percent
from pipeline.core.records import UnitTarget

_SECTIONS = ("policy", "sampling", "estimator", "grader", "data")
"""The order of settings: what readers want to know first."""
_FOLLOWING = frozenset({"staged_input", "schema"})
"""They differ only if another setting does; runs of another schema cannot be compared."""
_UNIT_TARGETS = {"sampling.rollouts": "rollouts", "estimator.target_sd": "target_sd", "estimator.budget": "budget"}
_LONGEST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the runs. `owed`: how many of its `units` have no labels yet. `rollouts`, `tokens`: of its finished units, without
    chains that the policy sampled. `on_common`: graded rollouts of common prefixes. `counts_are_shares`: see
    `estimators.base`."""

    run_dir: str
    policy: str
    estimator: str
    label_rule: str
    units: int
    owed: int
    chains: int
    prefixes: int
    rollouts: int
    tokens: int
    on_common: int
    counts_are_shares: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A setting and its value in each run, as JSON; `-` if a run does not have it."""

    key: str
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The whole comparison. `other_answers`: number of problems with the same words in both runs but different known
    answers. `bins[i][j]`: number of prefixes with a value in the i-th bin in a and in the j-th bin in b; the bins have equal
    width over 0 to 1.

    `moved`: the prefixes whose values differ most, as rows of `Common.prefixes` with their `problem`, the `name` of a chain and
    the `last` step (None for the bare problem). `distance`: the difference in standard deviations of both posteriors together.
    """

    a: Side
    b: Side
    differing: tuple[Difference, ...]
    overlap: Overlap
    other_answers: int
    shift: Shift
    noise: Noise
    flips: Flips
    bins: Sequence[Sequence[int]]
    moved: Sequence[Mapping[str, Any]]


def verdict(shift: Shift, noise: Noise, flips: Flips) -> str:
    if shift.pearson.value not in (None, 1) or not 0 < shift.prefixes == shift.equal:
        return ". ".join(f"{text[:1].upper()}{text[1:]}" for text in (_shift(shift), *_moved(noise), *_flipped(flips)))
    unlike = sum(number for i, row in enumerate(flips.table) for j, number in enumerate(row) if i != j)
    where = f"the same for {format_count(shift.prefixes, 'common prefix')}"
    if not unlike:
        return f"values and labels are {where}"
    total = sum(map(sum, flips.table))
    return f"values are {where}; the labels are made with other settings, so {unlike:,} of {total:,} differ"


def differing_settings(a: Settings, b: Settings) -> tuple[Difference, ...]:
    """The settings that differ, in the order policy, sampling, estimator, grader, data, others."""
    keys = [key for key in {*a, *b} if key not in _FOLLOWING and _shown(a, key) != _shown(b, key)]
    found = [
        Difference(key=SETTING_NAMES.get(key, key), a=_cut(_shown(a, key)), b=_cut(_shown(b, key))) for key in keys
    ]
    return tuple(sorted(found, key=lambda difference: (_rank(difference.key), difference.key)))


def requested_settings(unit_targets: Iterable[UnitTarget]) -> dict[str, object]:
    """The targets of all units, as settings. A target that differs between units is left out."""
    distinct = set(unit_targets)
    values = {key: {getattr(each, name) for each in distinct} for key, name in _UNIT_TARGETS.items()}
    return {key: value for key, found in values.items() if len(found) == 1 for value in found if value}


def _shift(shift: Shift) -> str:
    found = shift.shift
    if found.value is None:
        return "no common prefix has an unbiased value in both runs, so no shift can be measured"
    if found.low is None or found.high is None:
        return f"values of b differ by {found.value:+.3f} in the only common problem, so no shift can be measured"
    if not found.has_value:
        most = max(abs(found.low), abs(found.high))
        return (
            f"the mean of b - a over {format_count(shift.prefixes, 'common prefix')} is {found.value:+.3f} (95 % interval "
            f"{found.low:+.3f} to {found.high:+.3f}): a shift is not certain, and is at most {most:.3f} if there is one"
        )
    way = "lower" if found.value < 0 else "higher"
    low, high = sorted((abs(found.low), abs(found.high)))
    return f"values of b are {way} than those of a by {abs(found.value):.3f} on average (95 % interval {low:.3f} to {high:.3f})"


def _moved(noise: Noise) -> list[str]:
    if noise.beyond is None or noise.by_chance is None or noise.excess.value is None:
        return []
    beyond, chance = format_percent(noise.beyond), format_percent(noise.by_chance)
    if noise.excess.has_value and noise.excess.value > 0:
        return [f"{beyond} of prefixes differ by more than 1.96 sd of sampling noise; chance alone gives {chance}"]
    return [
        "single prefixes differ no more than sampling noise explains: "
        f"{beyond} of them by more than 1.96 sd of noise; chance alone gives {chance}"
    ]


def _flipped(flips: Flips) -> list[str]:
    if flips.flipped.value is None:
        return []
    chance = "" if flips.by_chance is None else f"; chance alone gives {format_percent(flips.by_chance)}"
    return [f"of the labels that are certain in both runs, {format_percent(flips.flipped.value)} differ{chance}"]


def _shown(settings: Mapping[str, object], key: str) -> str:
    return json.dumps(settings[key], ensure_ascii=False, sort_keys=True) if key in settings else "-"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _rank(key: str) -> int:
    section = key.partition(".")[0].partition(" ")[0]
    return _SECTIONS.index(section) if section in _SECTIONS else len(_SECTIONS)
