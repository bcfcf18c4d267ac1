"""Settings of `status`."""

from dataclasses import dataclass


@dataclass(kw_only=True, slots=True)
class StatusConfig:
    """Everything `status` needs."""

    run_dir: str = "???"
    json: bool = False
    """One JSON object instead of lines for people."""
