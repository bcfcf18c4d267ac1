"""Reads and checks the files that the records of a staged input or of one unit name, and how the input of a run has grown."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, FileVerifier, Ledger, check_sequence, remedy_for
from pipeline.core.records import InputRow
from pipeline.storage.commits import (
    INPUT,
    UNIT,
    Commit,
    CommitState,
    RecordSequence,
    commit_name,
    completions,
    record_sequences,
    resolve,
    shards_in_use,
)
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage
from pipeline.storage.units import content_of

Tables = dict[ShardRecord, pa.Table]
"""Intact files by their records."""


def staged_record(storage: Storage, ledger: Ledger, verifier: FileVerifier, staged_id: str) -> Commit | None:
    """The record of the staged input; None if it is missing or damaged. Also checks the files of other inputs and of earlier
    stagings."""
    staged = None
    for found in record_sequences(storage, INPUT):
        check_sequence(storage, ledger, found)
        whole = resolve(found).whole if found.sequence_id == staged_id else None
        staged = whole or staged
        for commit in found.commits:
            for shard in commit.shards if commit is not whole else ():
                check_superseded(verifier, shard, found)
    return staged


def check_superseded(verifier: FileVerifier, shard: ShardRecord, sequence: RecordSequence) -> None:
    """Check a file of a record that a later one has replaced."""
    void = {name for commit in sequence.commits for name in commit.void}
    if not {shard.file} & (void | verifier.needed | verifier.superseded):
        verifier.superseded_table(shard)


def whole_unit(
    sequence: RecordSequence,
    verifier: FileVerifier,
    ledger: Ledger,
    prove_part: Callable[[Commit, Mapping[ShardRecord, pa.Table]], None],
) -> tuple[Commit, Tables] | None:
    """The record that completes a unit, and the files in use. None where the unit is unfinished, which the ledger notes, or
    where a file is not what was committed.

    Also checks superseded files. `prove_part` is called with each part record of which all files are there.
    """
    tables: Tables = {}
    for shard in shards_in_use(sequence):
        if (table := verifier.table(shard, remedy_for(UNIT, ledger.command))) is not None:
            tables[shard] = table
    void = {name for commit in sequence.commits for name in commit.void}
    for commit in sequence.commits:
        present = {
            shard: table
            for shard in commit.shards
            if shard.file not in void and (table := _table(shard, tables, verifier)) is not None
        }
        if commit.state is CommitState.PART and len(present) == len(commit.shards):
            prove_part(commit, present)
    whole = resolve(sequence).whole
    if whole is None:
        ledger.owed.append(sequence.sequence_id)
    elif all(shard in tables for shard in shards_in_use(sequence)):
        return whole, tables
    return None


def _table(shard: ShardRecord, tables: Tables, verifier: FileVerifier) -> pa.Table | None:
    return tables.get(shard) if shard.file in verifier.needed else verifier.superseded_table(shard)


@contextmanager
def content_checked(ledger: Ledger, check: Check, where: str, remedy: str) -> Iterator[None]:
    """What the content of files breaks within this block is a fault. Only a forged checksum lets such content through, and it
    can break anything."""
    try:
        yield
    except (KeyError, ValueError, TypeError, IndexError) as error:
        ledger.fault(check, where, f"names files with invalid content ({error!r})", remedy)


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
