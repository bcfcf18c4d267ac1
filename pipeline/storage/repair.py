"""Damage found and declared: files that are not what was committed are set aside, and what they held is owed again.

A file that cannot be read for now is no damage: that ends the start, and the file stays.
"""

from dataclasses import replace

from pipeline.core.errors import Absent, Damaged, StoreError
from pipeline.core.ids import record_parts
from pipeline.storage.commits import (
    FOLDER,
    Commit,
    CommitChain,
    CommitState,
    commit_name,
    encode_commit,
    publish,
    shards_in_use,
)
from pipeline.storage.shards import ShardRecord, intact_bytes, keep_damaged, set_aside_damaged
from pipeline.storage.storage import Storage


def damaged_files(storage: Storage, chain: CommitChain) -> list[str]:
    """Names of the chain's files in use that are not what was committed."""
    return [shard.file for shard in shards_in_use(chain) if not _intact(storage, shard)]


def repair(storage: Storage, chain: CommitChain) -> tuple[CommitChain, list[str]]:
    """The chain with its damage set aside and declared void, and the names of what was damaged.

    Only for the driver that holds the run's lock. Raises StoreError when somebody else writes to the chain all the same.
    """
    found = list(chain.unreadable)
    for name in chain.unreadable:
        parts = record_parts(name.removeprefix(f"{FOLDER}/"))
        assert parts is not None
        word = Commit(kind=chain.kind, chain_id=chain.chain_id, number=parts[2], state=CommitState.VOID)
        _supersede(storage, word)
        chain = _with(chain, word)
    chain = replace(chain, unreadable=())
    while names := damaged_files(storage, chain):
        for name in names:
            set_aside_damaged(storage, name)
        word = Commit(
            kind=chain.kind, chain_id=chain.chain_id, number=chain.length, state=CommitState.VOID, void=tuple(names)
        )
        if not publish(storage, word):
            raise StoreError(f"another job works on {storage.place}: wait for it, then start again")
        chain = _with(chain, word)
        found += names
    return chain, found


def _supersede(storage: Storage, commit: Commit) -> None:
    """Put the record in the place of one that is damaged or missing; of the damaged one a copy is kept.

    Its number is free at no time: who works from an older reading of the chain would take it, and commit what later records
    have already.
    """
    name = commit_name(commit)
    while not publish(storage, commit):
        keep_damaged(storage, name)
        storage.replace(name, encode_commit(commit))


def _with(chain: CommitChain, word: Commit) -> CommitChain:
    commits = sorted((*chain.commits, word), key=lambda commit: commit.number)
    return replace(chain, commits=tuple(commits), length=max(chain.length, word.number + 1))


def _intact(storage: Storage, shard: ShardRecord) -> bool:
    try:
        intact_bytes(storage, shard)
    except (Absent, Damaged):
        return False
    return True
