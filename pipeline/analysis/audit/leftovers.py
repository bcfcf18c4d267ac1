"""What lies in a run directory and is not needed: told by what records name, and by whether the name is one of ours."""

from collections.abc import Collection
from dataclasses import dataclass

from pipeline.core.ids import is_our_name, record_parts
from pipeline.core.schemas import SCHEMAS
from pipeline.storage.arranged import LABELS
from pipeline.storage.commits import EDITION, INPUT, UNIT
from pipeline.storage.commits import FOLDER as COMMITS
from pipeline.storage.marker import MARKER
from pipeline.storage.run_record import NAME
from pipeline.storage.shards import ASIDE, DAMAGED
from pipeline.storage.starts import FOLDER as STARTS
from pipeline.storage.starts import TOLD
from pipeline.storage.storage import Storage
from pipeline.storage.unit_log import FLUSHED

_FOLDERS = (*SCHEMAS, FLUSHED, ASIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """`garbage` is ours and can be removed; `foreign` is not ours, and never touched.

    `misplaced` are label files in `labels/` that are not current, and current ones that are not there.
    """

    garbage: tuple[str, ...]
    foreign: tuple[str, ...]
    misplaced: tuple[str, ...]


def leftovers(storage: Storage, needed: Collection[str], current_labels: Collection[str]) -> Leftovers:
    """What is in the directory beside the files that are `needed` and the records."""
    garbage = [name for folder in ("", COMMITS, *_FOLDERS, DAMAGED, STARTS) for name in storage.unfinished(folder)]
    garbage += storage.names(DAMAGED)
    foreign = [name for name in storage.names("") if name not in {NAME, MARKER, COMMITS, DAMAGED, *_FOLDERS, *TOLD}]
    foreign += [name for name in storage.names(COMMITS) if not _is_record(name)]
    in_labels = set(storage.names(LABELS))
    for folder in _FOLDERS:
        for name in storage.names(folder):
            if not is_our_name(name.rpartition("/")[2]):
                foreign.append(name)
            elif name not in needed and not _waits_aside(name, needed, in_labels):
                garbage.append(name)
    ours = {name for name in in_labels if is_our_name(name.rpartition("/")[2])}
    return Leftovers(
        garbage=tuple(garbage), foreign=tuple(foreign), misplaced=tuple(sorted(ours ^ set(current_labels)))
    )


def _waits_aside(name: str, needed: Collection[str], in_labels: Collection[str]) -> bool:
    """Whether a file in `aside/` is the one copy of a label file that is needed."""
    at_home = name.replace(ASIDE, LABELS, 1)
    return name.startswith(f"{ASIDE}/") and at_home in needed and at_home not in in_labels


def _is_record(name: str) -> bool:
    parts = record_parts(name.removeprefix(f"{COMMITS}/"))
    return parts is not None and parts[0] in (INPUT, UNIT, EDITION)
