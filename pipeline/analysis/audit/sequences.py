"""Reads and checks the files that the records of a staged input or of one unit name."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, FileVerifier, Ledger, check_sequence, remedy_for
from pipeline.storage.commits import (
    INPUT,
    UNIT,
    Commit,
    CommitState,
    RecordSequence,
    record_sequences,
    resolve,
    shards_in_use,
)
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage

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
