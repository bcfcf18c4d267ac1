"""What a chain of commit records amounts to: which files hold a unit's log, and whether the unit is whole."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipeline.core.records import Totals
from pipeline.core.schemas import LOG_KEYS
from pipeline.storage.commits import Chain, Commit, State
from pipeline.storage.shards import ShardRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """`log` holds the unit's rollouts and sampled solutions: where an id stands twice, the first counts. `whole` is the last
    record that completes the unit with all its files intact, None where there is none or one of its files is void. `base`
    is the intact kernel of the last record that names one."""

    log: tuple[ShardRecord, ...]
    whole: Commit | None
    base: tuple[ShardRecord, ...] = ()


def standing(chain: Chain) -> Standing:
    left = list(_with_files_left(chain))
    start = max((at for at, (commit, files) in enumerate(left) if _holds_the_log(commit, files)), default=0)
    whole = next(((commit, files) for commit, files in reversed(left) if commit.state is State.WHOLE), None)
    log = dict.fromkeys(shard for _, files in left[start:] for shard in _log(files))
    void = {name for commit in chain.commits for name in commit.void}
    bases = [commit.base for commit in chain.commits if commit.base and commit.base[0].file not in void]
    return Standing(
        log=tuple(log),
        whole=whole[0] if whole and whole[1] == whole[0].shards else None,
        base=bases[-1] if bases else (),
    )


def shards_in_use(chain: Chain) -> Iterator[ShardRecord]:
    """Every file that must be intact for the chain to be read: the log, the whole unit's other files, the kernel of both."""
    found = standing(chain)
    yield from dict.fromkeys([*found.log, *(found.whole.shards if found.whole else ()), *found.base])


def _with_files_left(chain: Chain) -> Iterator[tuple[Commit, tuple[ShardRecord, ...]]]:
    """The records that add to the chain, each with those of its files that no later one has declared void.

    A file that was redone with the same content has the name of the damaged one, and is named by a record behind that word.
    """
    void_at = {name: at for at, commit in enumerate(chain.commits) for name in commit.void}
    for at, commit in enumerate(chain.commits):
        if commit.state is not State.VOID:
            yield commit, tuple(shard for shard in commit.shards if void_at.get(shard.file, -1) < at)


def logged_totals(chain: Chain) -> Totals:
    """The rollouts of a chain's log: those of its last whole record with all its files, and of the intact parts behind it."""
    log = set(standing(chain).log)
    intact = [commit for commit in chain.commits if commit.state is not State.VOID and log >= set(log_shards(commit))]
    wholes = [at for at, commit in enumerate(intact) if commit.state is State.WHOLE]
    return sum((commit.totals for commit in intact[wholes[-1] if wholes else 0 :]), Totals())


def log_shards(commit: Commit) -> list[ShardRecord]:
    """The files of a record that are part of its unit's log."""
    return _log(commit.shards)


def _log(shards: Iterable[ShardRecord]) -> list[ShardRecord]:
    return [shard for shard in shards if shard.table in LOG_KEYS]


def _holds_the_log(commit: Commit, files: tuple[ShardRecord, ...]) -> bool:
    return commit.state is State.WHOLE and log_shards(commit) == _log(files)
