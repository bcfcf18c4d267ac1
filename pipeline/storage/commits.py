"""Commit records: what exists in a run directory, and what a chain of them amounts to.

A file that no record names does not exist. Records stand in chains, one chain per unit: numbered from 0, each a small JSON
file published by create-if-absent. Who wants to commit has read every record before his own; when his number is taken he reads
what stands there, keeps of his own work what that has not, and takes the next number. So whoever writes, and however often, no
rollout is committed twice and no committed row ever changes. A chain only grows: damage is declared by a later record, which
names the files that are void; in the place of a record that was damaged itself stands one that says nothing else.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from pipeline.core.errors import Absent, StoreError
from pipeline.core.failpoints import failpoint
from pipeline.core.ids import is_shard_file, record_name, record_parts
from pipeline.core.records import Totals, UnitTarget
from pipeline.core.schemas import LOG_KEYS
from pipeline.storage.objects import each
from pipeline.storage.shards import ShardRecord
from pipeline.storage.storage import Storage, sha256_of

FOLDER = "commits"
INPUT = "input"
UNIT = "unit"
EDITION = "edition"
_CHECK = "check"
_ON_DISK = {"unit_target": "goal", "learned_from": "learnt_from"}
_TOTALS_ON_DISK = {"spent": "undecided"}
"""Fields of a record -> the names that run directories have for them."""


class CommitState(StrEnum):
    """What a record adds to its chain: a part of the work, all of what was asked for, or the word that something is damaged."""

    PART = "part"
    WHOLE = "whole"
    VOID = "void"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Files that belong together, as the `number`-th record of a chain.

    A whole unit names all its files, also those that earlier records name, and the `unit_target` it was asked for. `base`: the kernel
    that the unit's decisions are taken with, as another unit has learnt it; none: the shipped one. `learned_from`: how many
    chains the kernel among the files was learnt from. `void` names damaged files, from the run directory. `settings` are those
    of an edition.
    """

    kind: str
    chain_id: str
    number: int
    state: CommitState
    shards: tuple[ShardRecord, ...] = ()
    totals: Totals = field(default_factory=Totals)
    unit_target: UnitTarget = field(default_factory=UnitTarget)
    base: tuple[ShardRecord, ...] = ()
    learned_from: int = 0
    void: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitChain:
    """The records of a chain that can be read, in order; names of those that cannot; how many numbers are taken."""

    kind: str
    chain_id: str
    commits: tuple[Commit, ...] = ()
    unreadable: tuple[str, ...] = ()
    length: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedChain:
    """`log` holds the unit's rollouts and sampled solutions: where an id stands twice, the first counts. `whole` is the last
    record that completes the unit with all its files intact, None where there is none or one of its files is void. `base`
    is the intact kernel of the last record that names one."""

    log: tuple[ShardRecord, ...]
    whole: Commit | None
    base: tuple[ShardRecord, ...] = ()


def commit_name(commit: Commit) -> str:
    return f"{FOLDER}/{record_name(commit.kind, commit.chain_id, commit.number)}"


def publish(storage: Storage, commit: Commit) -> bool:
    """Publish the record under its number. False when that number is taken by another content."""
    data = encode_commit(commit)
    name = commit_name(commit)
    failpoint("commit.before")
    # A store may have done what it reported as failed or taken: what stands decides.
    won = storage.create(name, data) or storage.read(name) == data
    failpoint("commit.after")
    return won


def chain(storage: Storage, kind: str, chain_id: str, known_length: int = 0) -> CommitChain:
    """One chain, read number by number; `known_length` numbers are known to be taken, so a hole in them is damage."""
    commits: list[Commit] = []
    unreadable: list[str] = []
    number = 0
    while True:
        name = f"{FOLDER}/{record_name(kind, chain_id, number)}"
        try:
            commits.append(_decoded(storage.read(name), kind, chain_id, number))
        except Absent:
            if number >= known_length:
                break
            unreadable.append(name)
        except ValueError:
            unreadable.append(name)
        number += 1
    return CommitChain(
        kind=kind, chain_id=chain_id, commits=tuple(commits), unreadable=tuple(unreadable), length=number
    )


def chains(storage: Storage, kind: str) -> Iterator[CommitChain]:
    """All chains of a kind, in the order of their ids."""
    lengths = chain_lengths(storage, kind)
    yield from each(storage, lambda chain_id: chain(storage, kind, chain_id, lengths[chain_id]), lengths)


def chain_lengths(storage: Storage, kind: str) -> dict[str, int]:
    """How many numbers of each chain of a kind are taken, by their ids, in order."""
    lengths: dict[str, int] = defaultdict(int)
    for name in storage.names(FOLDER):
        parts = record_parts(name.removeprefix(f"{FOLDER}/"))
        if parts and parts[0] == kind:
            lengths[parts[1]] = max(lengths[parts[1]], parts[2] + 1)
    return dict(sorted(lengths.items()))


def record(storage: Storage, kind: str, chain_id: str, number: int) -> Commit | None:
    """A record; None where it is missing or damaged."""
    with suppress(Absent, ValueError):
        return _decoded(storage.read(f"{FOLDER}/{record_name(kind, chain_id, number)}"), kind, chain_id, number)
    return None


def encode_commit(commit: Commit) -> bytes:
    """The content of a record's file."""
    fields = _renamed(asdict(commit), _ON_DISK)
    fields["totals"] = _renamed(asdict(commit.totals), _TOTALS_ON_DISK)
    return json.dumps({**fields, _CHECK: checksum(fields)}, indent=1, sort_keys=True).encode()


def _decoded(data: bytes, kind: str, chain_id: str, number: int) -> Commit:
    """Raises ValueError for anything but the record of this name, unchanged."""
    try:
        fields = json.loads(data)
        check = fields.pop(_CHECK)
        if check != checksum(fields):
            raise ValueError("the record does not match its checksum")
        fields = _renamed(fields, {name: ours for ours, name in _ON_DISK.items()})
        totals = _renamed(fields["totals"], {name: ours for ours, name in _TOTALS_ON_DISK.items()})
        commit = Commit(
            **{
                **fields,
                "state": CommitState(fields["state"]),
                "shards": tuple(ShardRecord(**shard) for shard in fields["shards"]),
                "base": tuple(ShardRecord(**shard) for shard in fields["base"]),
                "unit_target": UnitTarget(**fields["unit_target"]),
                "totals": Totals(**totals),
                "void": tuple(fields["void"]),
                "settings": tuple((key, value) for key, value in fields["settings"]),
            }
        )
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a commit record: {error}") from error
    if (commit.kind, commit.chain_id, commit.number) != (kind, chain_id, number):
        raise ValueError("the record stands under another record's name")
    if not all(
        is_shard_file(file) for file in (*(shard.file for shard in (*commit.shards, *commit.base)), *commit.void)
    ):
        raise ValueError("the record names a file that is not of a run directory")
    return commit


def _renamed(fields: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in fields.items()}


def checksum(fields: Mapping[str, object]) -> str:
    """Of the fields of a record or of `run.json`, beside which it stands."""
    return sha256_of(json.dumps(fields, sort_keys=True).encode())


def refuse_damage(chain: CommitChain, place: str) -> None:
    """Raise StoreError when a record of the chain cannot be read."""
    if chain.unreadable:
        raise StoreError(
            f"{place}/{chain.unreadable[0]} is missing or damaged: start `label` on this run directory again, which redoes "
            "what it held"
        )


def resolve(chain: CommitChain) -> ResolvedChain:
    left = list(_with_files_left(chain))
    start = max((at for at, (commit, files) in enumerate(left) if _holds_the_log(commit, files)), default=0)
    whole = next(((commit, files) for commit, files in reversed(left) if commit.state is CommitState.WHOLE), None)
    log = dict.fromkeys(shard for _, files in left[start:] for shard in _log(files))
    void = {name for commit in chain.commits for name in commit.void}
    bases = [commit.base for commit in chain.commits if commit.base and commit.base[0].file not in void]
    return ResolvedChain(
        log=tuple(log),
        whole=whole[0] if whole and whole[1] == whole[0].shards else None,
        base=bases[-1] if bases else (),
    )


def shards_in_use(chain: CommitChain) -> Iterator[ShardRecord]:
    """Every file that must be intact for the chain to be read: the log, the whole unit's other files, the kernel of both."""
    found = resolve(chain)
    yield from dict.fromkeys([*found.log, *(found.whole.shards if found.whole else ()), *found.base])


def _with_files_left(chain: CommitChain) -> Iterator[tuple[Commit, tuple[ShardRecord, ...]]]:
    """The records that add to the chain, each with those of its files that no later one has declared void.

    A file that was redone with the same content has the name of the damaged one, and is named by a record behind that word.
    """
    void_at = {name: at for at, commit in enumerate(chain.commits) for name in commit.void}
    for at, commit in enumerate(chain.commits):
        if commit.state is not CommitState.VOID:
            yield commit, tuple(shard for shard in commit.shards if void_at.get(shard.file, -1) < at)


def log_totals(chain: CommitChain) -> Totals:
    """The rollouts of a chain's log: those of its last whole record with all its files, and of the intact parts behind it."""
    log = set(resolve(chain).log)
    intact = [
        commit for commit in chain.commits if commit.state is not CommitState.VOID and log >= set(_log(commit.shards))
    ]
    wholes = [at for at, commit in enumerate(intact) if commit.state is CommitState.WHOLE]
    return sum((commit.totals for commit in intact[wholes[-1] if wholes else 0 :]), Totals())


def _log(shards: Iterable[ShardRecord]) -> list[ShardRecord]:
    return [shard for shard in shards if shard.table in LOG_KEYS]


def _holds_the_log(commit: Commit, files: tuple[ShardRecord, ...]) -> bool:
    return commit.state is CommitState.WHOLE and _log(commit.shards) == _log(files)
