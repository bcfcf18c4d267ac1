"""Commit records: they define which files belong to a run directory, and how a record sequence is resolved.

A file that no record names does not exist for readers. Each unit has a *record sequence*, numbered from 0. A record is a small
JSON file, published by create-if-absent. A driver reads all earlier records before it commits. When its number is taken, it
reads that record, keeps the rows that the other driver's commit does not contain, and takes the next number. Therefore no
rollout is committed twice and no committed row changes, whoever writes and however often. A sequence only grows. Damage is
declared by a later record, which names the void files. A damaged record itself is replaced by an empty record with the state
`void`.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from pipeline.core.errors import Absent, StoreError, other_job
from pipeline.core.failpoints import failpoint
from pipeline.core.ids import is_shard_file, record_name, record_parts
from pipeline.core.records import Tally, Totals, UnitTarget
from pipeline.core.table import log_tables
from pipeline.storage.objects import each
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage, sha256_of

FOLDER = "commits"
INPUT = "input"
UNIT = "unit"
EDITION = "edition"
GROWTH = "growth"
_CHECK = "check"


class CommitState(StrEnum):
    """What a record adds to its sequence: a part of the work, the complete unit, or a declaration of damage."""

    PART = "part"
    WHOLE = "whole"
    VOID = "void"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Record number `number` of a sequence, with the files that it adds.

    The record of a complete unit names all files of the unit, including those of earlier records, and its `unit_target`.
    `base`: the kernel for the unit's decisions, learned from other units (empty: the built-in one). `learned_from`: the number
    of chains from which the kernel among the files was learned. `void`: names of damaged files. `settings`: those of an
    edition, or the copy of the run's identity in the record of an input.
    """

    kind: str
    sequence_id: str
    number: int
    state: CommitState
    shards: tuple[ShardRecord, ...] = ()
    tally: Tally = field(default_factory=lambda: Totals().tally)
    unit_target: UnitTarget = field(default_factory=UnitTarget)
    base: tuple[ShardRecord, ...] = ()
    learned_from: int = 0
    void: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def totals(self) -> Totals:
        """The counts of a unit of `label`, or of an input."""
        return self.tally.totals

    @property
    def recorded(self) -> dict[str, object]:
        """The values of `settings` by key. Raises ValueError for an invalid record."""
        return {key: json.loads(value) for key, value in self.settings}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSequence:
    """A record sequence: its readable records in order, the names of unreadable ones, and the number of taken numbers."""

    kind: str
    sequence_id: str
    commits: tuple[Commit, ...] = ()
    unreadable: tuple[str, ...] = ()
    length: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSequence:
    """The valid content of a sequence. `log`: files with the unit's rollouts and sampled solutions; of a repeated id, the first
    counts. `whole`: the last completing record, None where there is none or one of its files is void. `base`: the intact kernel
    of the last record that names one."""

    log: tuple[ShardRecord, ...]
    whole: Commit | None
    base: tuple[ShardRecord, ...] = ()


def commit_name(commit: Commit) -> str:
    return f"{FOLDER}/{record_name(commit.kind, commit.sequence_id, commit.number)}"


def publish(storage: Storage, commit: Commit) -> bool:
    """Publish the record under its number. Returns False when another record has that number."""
    data = encode_commit(commit)
    name = commit_name(commit)
    failpoint("commit.before")
    # A store may report a successful write as failed or taken, so the stored content decides.
    won = storage.create(name, data) or storage.read(name) == data
    failpoint("commit.after")
    return won


def publish_or_refuse(storage: Storage, commit: Commit) -> None:
    """Publish the record. Raises RunConflict when another record has its number."""
    if not publish(storage, commit):
        raise other_job(storage.run_dir)


def record_sequence(storage: Storage, kind: str, sequence_id: str, known_length: int = 0) -> RecordSequence:
    """Read one record sequence. The first `known_length` numbers are known to be taken, so a gap there is damage."""
    commits: list[Commit] = []
    unreadable: list[str] = []
    number = 0
    while True:
        name = f"{FOLDER}/{record_name(kind, sequence_id, number)}"
        try:
            commits.append(_decoded(storage.read(name), kind, sequence_id, number))
        except Absent:
            if number >= known_length:
                break
            unreadable.append(name)
        except ValueError:
            unreadable.append(name)
        number += 1
    return RecordSequence(
        kind=kind, sequence_id=sequence_id, commits=tuple(commits), unreadable=tuple(unreadable), length=number
    )


def record_sequences(storage: Storage, kind: str) -> Iterator[RecordSequence]:
    """All record sequences of a kind, ordered by id."""
    lengths = sequence_lengths(storage, kind)
    yield from each(
        storage, lambda sequence_id: record_sequence(storage, kind, sequence_id, lengths[sequence_id]), lengths
    )


def sequence_lengths(storage: Storage, kind: str) -> dict[str, int]:
    """The length of each sequence of a kind by sequence id, ordered by id."""
    lengths: dict[str, int] = defaultdict(int)
    for name in storage.names(FOLDER):
        parts = record_parts(name.removeprefix(f"{FOLDER}/"))
        if parts and parts[0] == kind:
            lengths[parts[1]] = max(lengths[parts[1]], parts[2] + 1)
    return dict(sorted(lengths.items()))


def record(storage: Storage, kind: str, sequence_id: str, number: int) -> Commit | None:
    """One record. None where it is missing or damaged."""
    with suppress(Absent, ValueError):
        return _decoded(storage.read(f"{FOLDER}/{record_name(kind, sequence_id, number)}"), kind, sequence_id, number)
    return None


def encode_commit(commit: Commit) -> bytes:
    """The content of the file of a record."""
    fields = asdict(commit)
    fields["totals"] = dict(fields.pop("tally"))
    return json.dumps({**fields, _CHECK: checksum(fields)}, indent=1, sort_keys=True).encode()


def _decoded(data: bytes, kind: str, sequence_id: str, number: int) -> Commit:
    """Raises ValueError for anything other than the unchanged record of this name."""
    try:
        fields = json.loads(data)
        check = fields.pop(_CHECK)
        if check != checksum(fields):
            raise ValueError("the record does not match its checksum")
        tally = Tally(dict(fields.pop("totals")))
        commit = Commit(
            **{
                **fields,
                "state": CommitState(fields["state"]),
                "shards": tuple(ShardRecord(**shard) for shard in fields["shards"]),
                "base": tuple(ShardRecord(**shard) for shard in fields["base"]),
                "unit_target": UnitTarget(**fields["unit_target"]),
                "tally": tally,
                "void": tuple(fields["void"]),
                "settings": tuple((key, value) for key, value in fields["settings"]),
            }
        )
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a commit record: {error}") from error
    if (commit.kind, commit.sequence_id, commit.number) != (kind, sequence_id, number):
        raise ValueError("the record has the name of another record")
    if not all(
        is_shard_file(file) for file in (*(shard.file for shard in (*commit.shards, *commit.base)), *commit.void)
    ):
        raise ValueError("the record names a file that cannot belong to a run directory")
    return commit


def checksum(fields: Mapping[str, object]) -> str:
    """The checksum that is stored with the fields of a record or of `run.json`."""
    return sha256_of(json.dumps(fields, sort_keys=True).encode())


def refuse_damage(sequence: RecordSequence, run_dir: str) -> None:
    """Raise StoreError when a record of the sequence cannot be read."""
    if sequence.unreadable:
        raise StoreError(
            f"{run_dir}/{sequence.unreadable[0]} is missing or damaged: start the command of this run directory again, "
            "which repeats the lost work"
        )


def resolve(sequence: RecordSequence) -> ResolvedSequence:
    left = list(_with_files_left(sequence))
    start = max((at for at, (commit, files) in enumerate(left) if _holds_the_log(commit, files)), default=0)
    whole = next(((commit, files) for commit, files in reversed(left) if commit.state is CommitState.WHOLE), None)
    log = dict.fromkeys(shard for _, files in left[start:] for shard in _log(files))
    void = {name for commit in sequence.commits for name in commit.void}
    bases = [commit.base for commit in sequence.commits if commit.base and commit.base[0].file not in void]
    return ResolvedSequence(
        log=tuple(log),
        whole=whole[0] if whole and whole[1] == whole[0].shards else None,
        base=bases[-1] if bases else (),
    )


def completions(sequence: RecordSequence) -> list[tuple[Commit, tuple[ShardRecord, ...]]]:
    """The completing records of a sequence in order, each with its files that no later record declares void."""
    return [(commit, files) for commit, files in _with_files_left(sequence) if commit.state is CommitState.WHOLE]


def shards_in_use(sequence: RecordSequence) -> Iterator[ShardRecord]:
    """All files that must be intact to use the sequence: the log, the other files of the complete unit, and the kernel."""
    found = resolve(sequence)
    yield from dict.fromkeys([*found.log, *(found.whole.shards if found.whole else ()), *found.base])


def _with_files_left(sequence: RecordSequence) -> Iterator[tuple[Commit, tuple[ShardRecord, ...]]]:
    """The records that add to the sequence, each with its files that no later record declares void.

    A file that is made again with the same content has the name of the damaged file. A record after the declaration names it.
    """
    void_at = {name: at for at, commit in enumerate(sequence.commits) for name in commit.void}
    for at, commit in enumerate(sequence.commits):
        if commit.state is not CommitState.VOID:
            yield commit, tuple(shard for shard in commit.shards if void_at.get(shard.file, -1) < at)


def log_tally(sequence: RecordSequence) -> Tally:
    """The counts of a log: those of the last completing record with all its files, plus the intact parts after it."""
    log = set(resolve(sequence).log)
    intact = [
        commit
        for commit in sequence.commits
        if commit.state is not CommitState.VOID and log >= set(_log(commit.shards))
    ]
    wholes = [at for at, commit in enumerate(intact) if commit.state is CommitState.WHOLE]
    return sum((commit.tally for commit in intact[wholes[-1] if wholes else 0 :]), Tally())


def _log(shards: Iterable[ShardRecord]) -> list[ShardRecord]:
    return [shard for shard in shards if shard.table in log_tables()]


def _holds_the_log(commit: Commit, files: tuple[ShardRecord, ...]) -> bool:
    return commit.state is CommitState.WHOLE and _log(commit.shards) == _log(files)
