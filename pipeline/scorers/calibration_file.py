"""Reads the file of a calibration, as `calibrate` writes it."""

from pathlib import Path

from pipeline.core.errors import InputError
from pipeline.scorers.calibration import Calibration, decode

MAX_BYTES = 64 * 2**20
"""No calibration is larger: `calibrate` writes about 10 kB per group of steps."""


def read_calibration(path: str | Path, key: str = "calibration") -> Calibration:
    """The calibration in a file that the setting `key` names. Raises InputError for a file that is missing, damaged or holds
    something else."""
    place = f"{key}={path}"
    remedy = "name a file that `python -m pipeline calibrate` has written"
    try:
        with Path(path).expanduser().open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror or error}; {remedy}") from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{place} is larger than any calibration; {remedy}")
    return decode(data, place)
