"""Proves how the input of a run has grown: nothing that it had is lost, and no chain is in two units.

Memory grows with the chains of a grown run; a run that never grew takes none.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from pipeline.core.records import InputRow
from pipeline.storage.commits import RecordSequence, commit_name, completions
from pipeline.storage.units import content_of


class InputHistory:
    """The records of the staged input, and what has been seen of its units so far."""

    def __init__(self, sequence: RecordSequence) -> None:
        self._completions = completions(sequence)
        self._mended = any(commit.void for commit in sequence.commits)
        self._contents: set[bytes] = set()
        self._units: Counter[str] = Counter()

    @property
    def grown(self) -> bool:
        """Whether the input was ever staged a second time."""
        return len(self._completions) > 1

    def record_faults(self) -> Iterator[tuple[str, str]]:
        """Pairs of a record and its fault. A record names all files of the record before it. Records after damage
        name other files, and are not compared."""
        for (before, _), (commit, _) in zip(self._completions, self._completions[1:], strict=False):
            if not self._mended:
                for shard in before.shards:
                    if shard not in commit.shards:
                        yield commit_name(commit), f"lacks {shard.file}, which the record before it has"

    def unit_faults(self, rows: Sequence[InputRow]) -> Iterator[str]:
        """The faults of the next unit of a grown run: chains that an earlier unit has, and wrong counts of earlier units."""
        if not self.grown:
            return
        for row in rows:
            content = bytes.fromhex(content_of(row))
            if content in self._contents:
                yield f"chain {content.hex()} is in two units"
            self._contents.add(content)
        for problem_id, again in {row.problem.problem_id: row.again for row in rows}.items():
            if again != self._units[problem_id]:
                yield f"problem {problem_id} has {self._units[problem_id]} earlier units, but {again} are noted"
        self._units.update({row.problem.problem_id for row in rows})
