"""Reads the file of a calibration, as `calibrate` writes it, and refuses one for another model."""

from pathlib import Path

from pipeline.core.errors import InputError, UsageError
from pipeline.scorers.calibration import Calibration, decode

MAX_BYTES = 64 * 2**20
"""No calibration is larger: `calibrate` writes about 10 kB per group of steps."""


def read_calibration(path: str | Path) -> Calibration:
    """The calibration in a file, which the setting `calibration` names. Raises InputError for a file that is missing, damaged
    or holds something else."""
    place = f"calibration={path}"
    remedy = "name a file that `python -m pipeline calibrate` has written"
    try:
        with Path(path).expanduser().open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror or error}; {remedy}") from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{place} is larger than any calibration; {remedy}")
    return decode(data, place)


def refuse_other_model(calibration: Calibration, model: str, place: str) -> None:
    """Raise UsageError if the calibration is not for scores of this model: its scores mean something else. Two paths of one
    folder are one model. `place`: the setting with the file."""
    made_for = calibration.made_from.model
    if made_for == model or (made_for and Path(made_for).expanduser().resolve() == Path(model).expanduser().resolve()):
        return
    whose = f"scores of {made_for}" if made_for else "scores that do not say which model made them"
    raise UsageError(
        f"{place} was made for {whose}, not of {model}: calibrate the scores of {model}, or give other_model=true if it is the "
        "same model"
    )
