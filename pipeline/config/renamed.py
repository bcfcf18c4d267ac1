"""Renamed settings: the old name is accepted for one version, with a hint."""

from collections.abc import Mapping, Sequence

KEYS: Mapping[str, Mapping[str, str]] = {
    "export": {"undecided": "uncertain", "offending": "invalid"},
    "train": {
        "accumulate": "gradient_accumulation_steps",
        "clip": "max_grad_norm",
        "warmup": "warmup_ratio",
        "recompute": "gradient_checkpointing",
    },
}
"""Command -> old key -> new key."""
OLD_UNCERTAIN = "undecided"
UNCERTAIN = "uncertain"
TAKES_UNCERTAIN = {"export": "neutral", "train": "neutral"}
"""By command: the setting whose choice OLD_UNCERTAIN is UNCERTAIN now. Of other commands it is OF_LABELS."""
OF_LABELS = "estimator.after_error"


def current_overrides(command: str, overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """The overrides (`key=value`) with today's names, and a hint for each old name."""
    found, hints = [], []
    for text in overrides:
        key, equals, value = text.partition("=")
        now, old = _current_key(command, key), _is_old_choice(command, key, value.strip("'\""))
        current = f"{now}{equals}{UNCERTAIN if old else value}"
        if current != text:
            hints.append(f"{text} is now called {current}; the next version no longer accepts the old name")
        found.append(current)
    return found, hints


def current_settings(command: str, settings: Mapping[str, object]) -> dict[str, object]:
    """The recorded settings of a command, with today's names."""
    return {
        _current_key(command, key): UNCERTAIN if _is_old_choice(command, key, value) else value
        for key, value in settings.items()
    }


def _current_key(command: str, key: str) -> str:
    return KEYS.get(command, {}).get(key, key)


def _is_old_choice(command: str, key: str, value: object) -> bool:
    return key == TAKES_UNCERTAIN.get(command, OF_LABELS) and value == OLD_UNCERTAIN
