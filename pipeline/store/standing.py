"""What a chain of commit records amounts to: which files hold a unit's log, and whether the unit is whole."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.store.commits import Chain, Commit, State
from pipeline.store.shards import ShardRecord

LOG_TABLES = ("solutions", "rollouts")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A record with the names that later ones declare void. What was redone bears the name of what was lost, as names are
    made of contents, and stands."""

    commit: Commit
    void: frozenset[str]

    @property
    def log(self) -> list[ShardRecord]:
        """What stands of the files that belong to the log."""
        return [shard for shard in self.commit.shards if shard.table in LOG_TABLES and shard.file not in self.void]

    @property
    def intact(self) -> bool:
        return not any(shard.file in self.void for shard in self.commit.shards)

    @property
    def holds_the_log(self) -> bool:
        named = [shard for shard in self.commit.shards if shard.table in LOG_TABLES]
        return self.commit.state is State.WHOLE and self.log == named


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """`log` holds the unit's rollouts and sampled solutions: where an id stands twice, the first counts. `whole` is the last
    record that completes the unit with all its files intact, None where there is none or one of its files is void."""

    log: tuple[ShardRecord, ...]
    whole: Commit | None


def standing(chain: Chain) -> Standing:
    entries = _entries(chain)
    start = max((at for at, entry in enumerate(entries) if entry.holds_the_log), default=0)
    last = next((entry for entry in reversed(entries) if entry.commit.state is State.WHOLE), None)
    log = dict.fromkeys(shard for entry in entries[start:] for shard in entry.log)
    return Standing(log=tuple(log), whole=last.commit if last and last.intact else None)


def shards_in_use(chain: Chain) -> Iterator[ShardRecord]:
    """Every file that must be intact for the chain to be read: the log, and the whole unit's other files."""
    found = standing(chain)
    yield from dict.fromkeys([*found.log, *(found.whole.shards if found.whole else ())])


def _entries(chain: Chain) -> list[_Entry]:
    entries: list[_Entry] = []
    void: frozenset[str] = frozenset()
    for commit in reversed(chain.commits):
        if commit.state is State.VOID:
            void |= frozenset(commit.void)
        else:
            entries.append(_Entry(commit=commit, void=void))
    return entries[::-1]
