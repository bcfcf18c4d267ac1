"""What the drivers of all commands do in a run directory that they hold: read its units, repair them, and end politely."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pipeline.core.errors import Interrupted
from pipeline.runtime.stop import INTERRUPTED
from pipeline.storage.commits import UNIT, RecordSequence, record_sequences
from pipeline.storage.repair import repair
from pipeline.storage.storage import Storage
from pipeline.storage.units import UnitRef


@contextmanager
def ended_politely() -> Iterator[None]:
    """Turn SystemExit into Interrupted: while Ray starts, its own SIGTERM handler ends the process with the signal's number."""
    try:
        yield
    except SystemExit as error:
        raise Interrupted(INTERRUPTED) from error


def sequences(storage: Storage) -> dict[str, RecordSequence]:
    """The record sequences of all units that have begun, by unit id."""
    return {found.sequence_id: found for found in record_sequences(storage, UNIT)}


def repaired(storage: Storage, units: Sequence[UnitRef]) -> tuple[dict[str, RecordSequence], list[str]]:
    """The record sequences of the units with every file checked, and the names of the damaged files, which are set aside."""
    found = sequences(storage)
    damaged: list[str] = []
    for unit in units:
        if unit.unit_id in found:
            found[unit.unit_id], names = repair(storage, found[unit.unit_id])
            damaged += names
    return found, damaged
