"""What a comparison of two runs came to, which of their settings differ, and all of it in a sentence. Pure.

In the sentence (`verdict`) a shift is told where its interval leaves 0 out, and so are movements both ways that cancel out:
more prefixes beyond noise than chance explains. What is not told may still be there: how large a shift could be is told
instead.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.analysis.compare.flips import Flips
from pipeline.analysis.compare.frames import Overlap
from pipeline.analysis.compare.shift import Noise, Shift
from pipeline.config.recorded_settings import Settings
from pipeline.core.formatting import format_percent
from pipeline.core.records import UnitTarget
from pipeline.core.statistics import Interval

_SECTIONS = ("policy", "sampling", "estimator", "grader", "data")
"""What readers want to know first."""
_NAMES = {
    "input": "data.path (content)",
    "policy_fingerprint": "policy.model (weights)",
    "kernel_prior": "estimator (version of its prior)",
    "grader_version": "grader (version)",
}
_FOLLOWING = frozenset({"staged_input", "schema"})
"""Differ where something else does; of another schema no run can be compared."""
_UNIT_TARGETS = {
    "sampling.rollouts": "rollouts",
    "estimator.target_sd": "target_sd",
    "estimator.budget": "budget",
}
_LONGEST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the runs. `soft`: the column that its labels are made of. `rollouts` and `tokens` are those of its whole units,
    chains that the policy sampled left out; `on_common`: graded rollouts of common prefixes.
    `counts_are_shares`: see `estimators.base`."""

    run_dir: str
    policy: str
    estimator: str
    label_rule: str
    soft: str
    units: int
    owed: int
    chains: int
    prefixes: int
    rollouts: int
    tokens: int
    on_common: int
    counts_are_shares: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPrefix:
    """What one run says of a prefix."""

    value: float | None
    mean: float
    sd: float
    correct: int
    rollouts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedPrefix:
    """A prefix whose posterior moved far for what is known of it: `distance` is in standard deviations of both together.

    `last`: its last step; `None` for the bare problem. `name`: of its chain.
    """

    problem: str
    name: str
    position: int
    last: str | None
    a: RunPrefix
    b: RunPrefix
    distance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """How many prefixes have which values in a and in b: `counts[i][j]` those in the i-th bin of a and the j-th of b, of as
    many bins of equal width over 0 to 1."""

    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A setting, and what it is in each run, as JSON, or `-` where a run has none."""

    key: str
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that is told. `other_answers`: problems of the same words in both whose known answers differ."""

    a: Side
    b: Side
    differing: tuple[Difference, ...]
    overlap: Overlap
    other_answers: int
    shift: Shift
    noise: Noise
    flips: Flips
    bins: Bins
    moved: tuple[MovedPrefix, ...]


def verdict(shift: Shift, noise: Noise, flips: Flips) -> str:
    if not _same_values(shift):
        return "; ".join([_shift(shift), *_moved(noise), *_flipped(flips)])
    unlike = sum(number for i, row in enumerate(flips.table) for j, number in enumerate(row) if i != j)
    where = f"on all of {shift.prefixes:,} common prefixes"
    if not unlike:
        return f"the same values and labels, {where}"
    return f"the same values, {where}; {unlike:,} of {sum(map(sum, flips.table)):,} labels differ, as they are made otherwise"


def format_interval(figure: Interval, sign: str = "+") -> str:
    """A figure with its interval, if it has one; `sign`: `+` for differences, else empty."""
    if figure.value is None:
        return "-"
    value = f"{figure.value:{sign}.3f}"
    return value if figure.low is None else f"{value} ({figure.low:{sign}.3f} to {figure.high:{sign}.3f})"


def differing_settings(a: Settings, b: Settings) -> tuple[Difference, ...]:
    """Those of the policy first, then how it was sampled, estimated and graded, and what was read."""
    keys = [key for key in {*a, *b} if key not in _FOLLOWING and _shown(a, key) != _shown(b, key)]
    found = [Difference(key=_NAMES.get(key, key), a=_cut(_shown(a, key)), b=_cut(_shown(b, key))) for key in keys]
    return tuple(sorted(found, key=lambda difference: (_rank(difference.key), difference.key)))


def requested_settings(goals: Iterable[UnitTarget]) -> dict[str, object]:
    """What all units were asked for, as settings; nothing of what differs between units."""
    distinct = set(goals)
    found: dict[str, object] = {}
    for key, name in _UNIT_TARGETS.items():
        values = {getattr(unit_target, name) for unit_target in distinct}
        if len(values) == 1 and (value := values.pop()):
            found[key] = value
    return found


def _same_values(shift: Shift) -> bool:
    alike = shift.pearson.value is None or shift.pearson.value == 1
    return 0 < shift.prefixes == shift.equal and alike


def _shift(shift: Shift) -> str:
    found = shift.shift
    if found.value is None:
        return "no common prefix has an unbiased value in both runs: of a shift nothing can be said"
    if found.low is None or found.high is None:
        return f"values of b differ by {found.value:+.3f}, of a single problem: of a shift nothing can be said"
    if not found.has_value:
        most = max(abs(found.low), abs(found.high))
        text = f"b - a {format_interval(found)}: at 95 %, no more than {most:.3f}"
        return f"no mean shift that {shift.prefixes:,} prefixes could show ({text})"
    way = "lower" if found.value < 0 else "higher"
    low, high = sorted((abs(found.low), abs(found.high)))
    return f"values of b are {way} by {abs(found.value):.3f} ({low:.3f} to {high:.3f})"


def _moved(noise: Noise) -> list[str]:
    if noise.beyond is None or noise.by_chance is None or noise.excess.value is None:
        return []
    beyond, chance = format_percent(noise.beyond), format_percent(noise.by_chance)
    if noise.excess.has_value and noise.excess.value > 0:
        return [f"{beyond} of prefixes differ by more than noise, where chance makes it {chance}"]
    return [f"single prefixes differ no more than by noise ({beyond}, chance {chance})"]


def _flipped(flips: Flips) -> list[str]:
    if flips.flipped.value is None:
        return []
    chance = "" if flips.by_chance is None else f" (chance alone: {format_percent(flips.by_chance)})"
    return [f"{format_percent(flips.flipped.value)} of labels flip{chance}"]


def _shown(settings: Mapping[str, object], key: str) -> str:
    return json.dumps(settings[key], ensure_ascii=False, sort_keys=True) if key in settings else "-"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _rank(key: str) -> int:
    section = key.partition(".")[0].partition(" ")[0]
    return _SECTIONS.index(section) if section in _SECTIONS else len(_SECTIONS)
