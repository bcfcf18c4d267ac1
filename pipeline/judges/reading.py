"""What a stored critique says. One that was never written says by how it ended why; a text is read by its judge."""

from collections.abc import Sequence

from pipeline.core.records import Finish, Reading, ReadingKind
from pipeline.judges.base import Judge

_NOT_WRITTEN = {
    Finish.TOO_LONG: ReadingKind.TOO_LONG,
    Finish.ENGINE_FAILED: ReadingKind.FAILED,
    Finish.ABORT: ReadingKind.FAILED,
}


def read_critique(judge: Judge, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
    """The reading of a critique of a chain with this number of steps, from its turns as they are stored."""
    if finish in _NOT_WRITTEN and not any(turns):
        return Reading(kind=_NOT_WRITTEN[finish])
    return judge.read(turns, finish, steps)
