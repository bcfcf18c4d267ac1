"""What a chain of commit records amounts to: which files hold a unit's log, and whether the unit is whole."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipeline.store.commits import Chain, Commit, State
from pipeline.store.shards import ShardRecord

LOG_TABLES = ("solutions", "rollouts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """`log` holds the unit's rollouts and sampled solutions: where an id stands twice, the first counts. `whole` is the last
    record that completes the unit with all its files intact, None where there is none or one of its files is void."""

    log: tuple[ShardRecord, ...]
    whole: Commit | None


def standing(chain: Chain) -> Standing:
    """Of each record the files count that no later one declares void: a file made anew may have the name it had before."""
    intact = _intact_shards(chain)
    commits = [commit for commit in chain.commits if commit.state is not State.VOID]
    wholes = [commit for commit in commits if commit.state is State.WHOLE]
    start = max((commit.number for commit in wholes if _log(commit.shards) == _log(intact[commit.number])), default=0)
    log = dict.fromkeys(shard for commit in commits for shard in _log(intact[commit.number]) if commit.number >= start)
    whole = wholes[-1] if wholes and intact[wholes[-1].number] == wholes[-1].shards else None
    return Standing(log=tuple(log), whole=whole)


def shards_in_use(chain: Chain) -> Iterator[ShardRecord]:
    """Every file that must be intact for the chain to be read: the log, and the whole unit's other files."""
    found = standing(chain)
    yield from dict.fromkeys([*found.log, *(found.whole.shards if found.whole else ())])


def _log(shards: Iterable[ShardRecord]) -> list[ShardRecord]:
    return [shard for shard in shards if shard.table in LOG_TABLES]


def _intact_shards(chain: Chain) -> dict[int, tuple[ShardRecord, ...]]:
    """By record number."""
    void: set[str] = set()
    intact = {}
    for commit in reversed(chain.commits):
        intact[commit.number] = tuple(shard for shard in commit.shards if shard.file not in void)
        void.update(commit.void)
    return intact
