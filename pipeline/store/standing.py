"""What a chain of commit records amounts to: which files hold a unit's log, and whether the unit is whole."""

from collections.abc import Iterator
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
    void = {name for commit in chain.commits for name in commit.void}
    commits = [commit for commit in chain.commits if commit.state is not State.VOID]
    start = max((at for at, commit in enumerate(commits) if _holds_the_log(commit, void)), default=0)
    whole = next((commit for commit in reversed(commits) if commit.state is State.WHOLE), None)
    intact = whole is not None and not any(shard.file in void for shard in whole.shards)
    log = dict.fromkeys(shard for commit in commits[start:] for shard in _log(commit) if shard.file not in void)
    return Standing(log=tuple(log), whole=whole if intact else None)


def shards_in_use(chain: Chain) -> Iterator[ShardRecord]:
    """Every file that must be intact for the chain to be read: the log, and the whole unit's other files."""
    found = standing(chain)
    yield from dict.fromkeys([*found.log, *(found.whole.shards if found.whole else ())])


def _log(commit: Commit) -> list[ShardRecord]:
    return [shard for shard in commit.shards if shard.table in LOG_TABLES]


def _holds_the_log(commit: Commit, void: set[str]) -> bool:
    return commit.state is State.WHOLE and not any(shard.file in void for shard in _log(commit))
