"""The calibration of a scoring: read from its file, and refused where it is for another model."""

from pathlib import Path
from typing import Protocol

from pipeline.core.ids import content_id
from pipeline.scorers.calibration import Calibration
from pipeline.scorers.calibration_file import read_calibration, refuse_other_model


class Calibrating(Protocol):
    """Settings of a command that calibrates scores."""

    @property
    def calibration(self) -> str | None: ...

    @property
    def other_model(self) -> bool: ...


def calibration_of(config: Calibrating) -> Calibration | None:
    """The calibration of the settings; None without one. Raises InputError for a file that holds none."""
    return None if config.calibration is None else read_calibration(config.calibration)


def refuse_other(config: Calibrating, calibration: Calibration | None, model: str) -> None:
    """Raise UsageError for a calibration of another model than that of the scores, unless the settings accept it."""
    if calibration is not None and not config.other_model:
        refuse_other_model(calibration, model, f"calibration={config.calibration}")


def calibration_id(config: Calibrating) -> str | None:
    """A hash of the calibration's file; None without one. Raises InputError as `calibration_of` does."""
    if calibration_of(config) is None:
        return None
    return content_id("calibration", Path(str(config.calibration)).expanduser().read_text("utf-8"))
