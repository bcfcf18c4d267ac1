"""Which settings of two runs differ. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.config.recorded import Settings
from pipeline.core.records import Goal

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
_GOALS = {
    "sampling.rollouts": "rollouts",
    "estimator.target_sd": "target_sd",
    "estimator.budget": "budget",
}
_LONGEST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A setting, and what it is in each run, as JSON, or `-` where a run has none."""

    key: str
    a: str
    b: str


def differing(a: Settings, b: Settings) -> tuple[Difference, ...]:
    """Those of the policy first, then how it was sampled, estimated and graded, and what was read."""
    keys = [key for key in {*a, *b} if key not in _FOLLOWING and _shown(a, key) != _shown(b, key)]
    found = [Difference(key=_NAMES.get(key, key), a=_cut(_shown(a, key)), b=_cut(_shown(b, key))) for key in keys]
    return tuple(sorted(found, key=lambda difference: (_rank(difference.key), difference.key)))


def asked(goals: Iterable[Goal]) -> dict[str, object]:
    """What all units were asked for, as settings; nothing of what differs between units."""
    distinct = set(goals)
    found: dict[str, object] = {}
    for key, name in _GOALS.items():
        values = {getattr(goal, name) for goal in distinct}
        if len(values) == 1 and (value := values.pop()):
            found[key] = value
    return found


def _shown(settings: Mapping[str, object], key: str) -> str:
    return json.dumps(settings[key], ensure_ascii=False, sort_keys=True) if key in settings else "-"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _rank(key: str) -> int:
    section = key.partition(".")[0].partition(" ")[0]
    return _SECTIONS.index(section) if section in _SECTIONS else len(_SECTIONS)
