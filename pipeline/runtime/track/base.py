"""What a system that draws runs is asked for. All calls come from one thread, which is not the main one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Sink(Protocol):
    """It may raise anything: a run goes on without it."""

    def start(self, name: str, settings: Mapping[str, object], folder: Path) -> None:
        """A start of the run of this name begins. `settings` are dotted keys with plain values; `folder` is for files."""
        ...

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """What holds at a step; steps grow."""
        ...

    def end(self) -> None:
        """Nothing more comes."""
        ...
