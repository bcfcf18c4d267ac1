"""Settings that had another name: the old one is accepted for one version, with a hint."""

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
"""By command: the old key -> the new one."""
OLD_UNCERTAIN = "undecided"
UNCERTAIN = "uncertain"
TAKES_UNCERTAIN = ("neutral", "estimator.after_error")
"""Settings whose choice OLD_UNCERTAIN is UNCERTAIN now."""


def current_overrides(command: str, overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """What was written as `key=value`, with today's names, and a hint for each old one."""
    found, hints = [], []
    for text in overrides:
        key, equals, value = text.partition("=")
        now = KEYS.get(command, {}).get(key, key)
        if now in TAKES_UNCERTAIN and value == OLD_UNCERTAIN:
            value = UNCERTAIN
        current = f"{now}{equals}{value}"
        if current != text:
            hints.append(f"{text} is called {current} now; the old name goes with the next version")
        found.append(current)
    return found, hints


def current_settings(command: str, settings: Mapping[str, object]) -> dict[str, object]:
    """Settings that a command has recorded, with today's names."""
    keys = KEYS.get(command, {})
    return {
        keys.get(key, key): UNCERTAIN if keys.get(key, key) in TAKES_UNCERTAIN and value == OLD_UNCERTAIN else value
        for key, value in settings.items()
    }
