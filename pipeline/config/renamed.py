"""Renamed settings: the old name is accepted for one version, with a hint. Renamed columns of `labels`: the old name is refused
with the new one, because `value` is the name of another column than before.
"""

from collections.abc import Mapping, Sequence

from pipeline.core.errors import UsageError

KEYS: Mapping[str, Mapping[str, str]] = {
    "export": {"undecided": "uncertain", "offending": "invalid"},
    "train": {
        "accumulate": "gradient_accumulation_steps",
        "clip": "max_grad_norm",
        "warmup": "warmup_ratio",
        "recompute": "gradient_checkpointing",
    },
    "score": {
        "separator": "scorer.separator",
        "max_length": "scorer.max_length",
        "batch_tokens": "scorer.batch_tokens",
    },
}
"""Command -> old key -> new key."""
SHORT: Mapping[str, Mapping[str, str]] = {"score": {"model": "scorer.model"}}
"""Command -> short key -> the setting that it stands for. Short keys stay, and give no hint."""
SPELLED: Mapping[str, Mapping[str, str]] = {"judge": {"judge.policy": "policy"}}
"""Command -> another name of a section -> its name. Both stay: the policy of `judge` is that of its judge."""
OLD_UNCERTAIN = "undecided"
UNCERTAIN = "uncertain"
TAKES_UNCERTAIN = {"export": "neutral", "train": "neutral"}
"""By command: the setting whose choice OLD_UNCERTAIN is UNCERTAIN now. Of other commands it is OF_LABELS."""
OF_LABELS = "estimator.after_error"

COLUMNS: Mapping[str, str] = {
    at + old: at + new
    for at in ("", "root_")
    for old, new in (("posterior_mean", "value"), ("posterior_sd", "value_sd"), ("value_rollouts", "unbiased_rollouts"))
}
"""Old column of `labels` -> new column."""
CHOOSES_COLUMN = "soft"
"""The setting that chooses a column of values. Its choice OLD_VALUE is VALUE now."""
OLD_VALUE, VALUE = "posterior_mean", "value"


def current_overrides(command: str, overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """The overrides (`key=value`) with today's names, and a hint for each old name. Raises UsageError where a column
    is chosen by its old name."""
    found, hints = [], []
    for text in overrides:
        key, equals, value = text.partition("=")
        if key == CHOOSES_COLUMN and value.strip("'\"") == OLD_VALUE:
            raise UsageError(f"{text}: the column is now called {VALUE}; give {CHOOSES_COLUMN}={VALUE}")
        now, old = _current_key(command, key), _is_old_choice(command, key, value.strip("'\""))
        current = f"{now}{equals}{UNCERTAIN if old else value}"
        if current != text and not _stays(command, key):
            hints.append(f"{text} is now called {current}; the next version no longer accepts the old name")
        found.append(current)
    return found, hints


def current_settings(command: str, settings: Mapping[str, object]) -> dict[str, object]:
    """The recorded settings of a command, with today's names."""
    return {_current_key(command, key): _current_value(command, key, value) for key, value in settings.items()}


def _current_value(command: str, key: str, value: object) -> object:
    if key == CHOOSES_COLUMN and value in (None, OLD_VALUE):
        # null stood for the column that is called `value` now.
        return VALUE
    return UNCERTAIN if _is_old_choice(command, key, value) else value


def _current_key(command: str, key: str) -> str:
    for spelled, section in SPELLED.get(command, {}).items():
        if key == spelled or key.startswith(f"{spelled}."):
            return section + key.removeprefix(spelled)
    return {**KEYS.get(command, {}), **SHORT.get(command, {})}.get(key, key)


def _stays(command: str, key: str) -> bool:
    """Whether this key is another name that stays."""
    return key in SHORT.get(command, {}) or any(
        key == spelled or key.startswith(f"{spelled}.") for spelled in SPELLED.get(command, {})
    )


def _is_old_choice(command: str, key: str, value: object) -> bool:
    return key == TAKES_UNCERTAIN.get(command, OF_LABELS) and value == OLD_UNCERTAIN
