"""Damage found and declared: files that are not what was committed are set aside, and what they held is owed again."""

from dataclasses import replace

from pipeline.errors import StoreError
from pipeline.store.commits import Chain, Commit, State, publish
from pipeline.store.shards import ShardRecord, intact_bytes, set_aside_damaged
from pipeline.store.standing import shards_in_use
from pipeline.store.storage import Storage


def damage(storage: Storage, chain: Chain) -> list[str]:
    """Names of the chain's records that cannot be read, and of its files in use that are not what was committed."""
    void = {name for commit in chain.commits for name in commit.void}
    records = [name for name in chain.unreadable if name not in void]
    return records + [shard.file for shard in shards_in_use(chain) if not _intact(storage, shard)]


def repaired(storage: Storage, chain: Chain) -> tuple[Chain, list[str]]:
    """The chain with its damage set aside and declared void, and the names of what was damaged.

    Only for the driver that holds the run's lock.
    """
    found: list[str] = []
    while names := damage(storage, chain):
        for name in names:
            set_aside_damaged(storage, name)
        word = Commit(
            kind=chain.kind, chain_id=chain.chain_id, number=chain.length, state=State.VOID, void=tuple(names)
        )
        if not publish(storage, word):
            raise StoreError(f"another job works on {storage.place}: wait for it, then start again")
        chain = replace(chain, commits=(*chain.commits, word), length=chain.length + 1)
        found += names
    return chain, found


def _intact(storage: Storage, shard: ShardRecord) -> bool:
    try:
        intact_bytes(storage, shard)
    except StoreError:
        return False
    return True
