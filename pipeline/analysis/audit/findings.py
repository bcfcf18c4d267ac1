"""The result of an audit (`Ledger`), and the checks of records, files and orphaned files.

`run.json` and commit records must be readable, complete and byte for byte as written. Files that records name must exist
unchanged, with intact pages, schema and row count (`FileVerifier`). `find_orphans` lists the files that no record needs,
separates our own files from foreign ones by their names, and finds those that are not in the folder where they belong.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum

import pyarrow as pa

from pipeline.analysis.trees.files import is_tree_page
from pipeline.config.recorded_settings import Settings
from pipeline.core.errors import Absent, Damaged, StoreError, Unreachable
from pipeline.core.ids import is_our_name, record_parts
from pipeline.core.records import Totals
from pipeline.core.table import TABLES
from pipeline.storage.commits import (
    EDITION,
    GROWTH,
    INPUT,
    UNIT,
    Commit,
    RecordSequence,
    commit_name,
    encode_commit,
    record_sequences,
)
from pipeline.storage.commits import FOLDER as COMMITS
from pipeline.storage.editions import data_files
from pipeline.storage.lock import MARKER
from pipeline.storage.run_record import (
    JUDGE,
    LABEL,
    NAME,
    STAGED_INPUT,
    encode_identity,
    recorded_identity,
    refuse_other_schema,
    settings_copy,
    with_input,
)
from pipeline.storage.shards import ASIDE, DAMAGED, ShardRecord, aside_name, notes_of, verified_file
from pipeline.storage.starts import ADVISORY
from pipeline.storage.starts import FOLDER as STARTS
from pipeline.storage.storage import Storage
from pipeline.storage.stored_critiques import FOLDER as JUDGES
from pipeline.storage.stored_findings import FOLDER as CHECKS
from pipeline.storage.unit_files import FLUSHED

MAX_NAMED = 20
"""The largest number of faults of one kind and one unit that are listed one by one."""
_REMEDIES = {
    INPUT: "which stages the input again",
    UNIT: "which repeats the work that is lost",
    GROWTH: "which goes on without it: what has been promoted stays",
}
_MAKE_AGAIN = {
    LABEL: "make the edition again with `relabel` or `regrade`",
    JUDGE: "make the edition again with `regrade`",
}
NEEDLESS = "remove it: nothing needs it any more"
_FOLDERS = (*TABLES, FLUSHED, ASIDE)


class Check(StrEnum):
    """The kinds of checks, in the order in which they run and are printed."""

    SETTINGS = "settings"
    RECORDS = "records"
    FILES = "files"
    ROWS = "rows"
    ROLLOUTS = "rollouts"
    CRITIQUES = "critiques"
    FINDINGS = "findings"
    SCORES = "scores"
    SAMPLES = "samples"
    STEP_SCORES = "stepscores"
    SEARCHES = "searches"
    TOTALS = "totals"
    LABELS = "labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault: where it is (a file or record), what is wrong, and what to do about it."""

    check: Check
    where: str
    fault: str
    remedy: str


@dataclass(slots=True)
class Ledger:
    """`command`: whose run is audited. `looked_at`: number of things that each check has examined. `owed`: ids of unfinished
    units."""

    command: str = LABEL
    looked_at: Counter[Check] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    owed: list[str] = field(default_factory=list)

    def count(self, check: Check, number: int = 1) -> None:
        self.looked_at[check] += number

    def fault(self, check: Check, where: str, fault: str, remedy: str) -> None:
        self.findings.append(Finding(check=check, where=where, fault=fault, remedy=remedy))

    def faults(self, check: Check, where: str, faults: Iterable[str], remedy: str) -> bool:
        """Note the faults of one file or record. True if there are any."""
        some = False
        for number, fault in enumerate(faults):
            some = True
            if number == MAX_NAMED:
                self.fault(check, where, f"has more faults of this kind than these {MAX_NAMED}", remedy)
                break
            self.fault(check, where, fault, remedy)
        return some

    def compare_totals(self, commit: Commit, counted: Totals, source: str, remedy: str) -> None:
        """Note a fault if a record has other totals than those `counted` in the `source`, such as "the log has"."""
        if counted != commit.totals:
            differing = [
                f"{part.name} is {getattr(commit.totals, part.name)}, but {source} {getattr(counted, part.name)}"
                for part in fields(Totals)
                if getattr(commit.totals, part.name) != getattr(counted, part.name)
            ]
            self.fault(Check.TOTALS, commit_name(commit), f"its totals are wrong: {'; '.join(differing)}", remedy)


def audited_settings(storage: Storage, ledger: Ledger) -> Settings | None:
    """The settings that the run was made with. If `run.json` is lost, they come from the copy in the record of the staged
    input; None if that is lost too.

    Raises UsageError for a run of another schema version.
    """
    ledger.count(Check.SETTINGS)
    copies = {
        found.sequence_id: [commit for commit in found.commits if commit.settings]
        for found in record_sequences(storage, INPUT)
    }
    try:
        identity: Settings = recorded_identity(storage)
    except Unreachable:
        raise
    except StoreError:
        ledger.fault(Check.SETTINGS, NAME, "is missing or damaged", f"{_again(ledger.command)}, with the same settings")
        lost = [found[0].settings for found in copies.values() if found]
        return {key: json.loads(value) for key, value in lost[-1]} if lost else None
    refuse_other_schema(storage, identity)
    if storage.read(NAME) != encode_identity(identity):
        ledger.fault(Check.SETTINGS, NAME, "is not as it was written", "restore it from a backup")
    for commit in copies.get(str(identity.get(STAGED_INPUT)), ()):
        # Only the first record must have the first input.
        copy = {key: json.loads(value) for key, value in commit.settings}
        if commit.settings != settings_copy(with_input(identity, copy) if commit.number else identity):
            fault = f"differs from the copy in {commit_name(commit)}"
            ledger.fault(Check.SETTINGS, NAME, fault, "restore it from a backup")
    return identity


def check_sequence(storage: Storage, ledger: Ledger, sequence: RecordSequence) -> None:
    """Find records that are unreadable or not as they were written."""
    ledger.count(Check.RECORDS, sequence.length)
    remedy = remedy_for(sequence.kind, ledger.command)
    for name in sequence.unreadable:
        ledger.fault(Check.RECORDS, name, "is missing or damaged", remedy)
    for commit in sequence.commits:
        name = commit_name(commit)
        if storage.read(name) != encode_commit(commit):
            ledger.fault(Check.RECORDS, name, "is not as it was written", f"move it away, then {remedy}")


def remedy_for(kind: str, command: str = LABEL) -> str:
    """What to do about damaged data of a record sequence of this kind, in a run of `command`."""
    return f"{_again(command)}, {_REMEDIES[kind]}" if kind in _REMEDIES else _MAKE_AGAIN.get(command, "move it away")


def _again(command: str) -> str:
    return f"start `{command}` on this run directory again" if command == LABEL else f"start `{command}` again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The row groups of a file and its notes."""

    groups: Sequence[pa.Table]
    notes: Mapping[str, str]


class FileVerifier:
    """Reads and checks committed files. `needed`: names of files that must exist. `superseded`: names of files that a later
    record has replaced."""

    def __init__(self, storage: Storage, ledger: Ledger) -> None:
        self._storage = storage
        self._ledger = ledger
        self.needed: set[str] = set()
        self.superseded: set[str] = set()

    def content(self, shard: ShardRecord, remedy: str) -> Content | None:
        """Read a file that must exist. None, and a finding, if it is not what was committed."""
        self.needed.add(shard.file)
        return self._checked(shard, remedy, may_lack=False)

    def table(self, shard: ShardRecord, remedy: str) -> pa.Table | None:
        """All rows of a file that must exist. None, and a finding, if it is not what was committed."""
        content = self.content(shard, remedy)
        return None if content is None else pa.concat_tables(content.groups)

    def superseded_table(self, shard: ShardRecord) -> pa.Table | None:
        """All rows of a file that may have been pruned. None if it was pruned. None, and a finding, if it is damaged."""
        self.superseded.add(shard.file)
        content = self._checked(shard, NEEDLESS, may_lack=True)
        return None if content is None else pa.concat_tables(content.groups)

    def _checked(self, shard: ShardRecord, remedy: str, *, may_lack: bool) -> Content | None:
        try:
            file = verified_file(self._storage, shard)
            groups = [file.read_row_group(group, use_threads=False) for group in range(file.num_row_groups)]
            expected = TABLES[shard.table].schemas()
            same = any(file.schema_arrow.equals(schema, check_metadata=False) for schema in expected)
            fault = "" if same else f"has another schema than the table {shard.table}"
        except Absent:
            if may_lack:
                return None
            fault = "is missing"
        except Unreachable:
            raise
        except Damaged:
            fault = "is not what was committed"
        except (StoreError, pa.ArrowException, OSError, KeyError) as error:
            fault = f"is not what was committed ({' '.join(str(error).split())})"
        self._ledger.count(Check.FILES)
        if fault:
            self._ledger.fault(Check.FILES, shard.file, fault, remedy)
            return None
        return Content(groups=groups, notes=notes_of(file))


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """`garbage`: our own files, to be removed. `foreign`: those of others, which are never touched. `strays`:
    the garbage of a finished run that is in folders that people read, where it doubles rows."""

    garbage: tuple[str, ...]
    foreign: tuple[str, ...]
    strays: tuple[str, ...] = ()


def find_orphans(storage: Storage, ledger: Ledger, verifier: FileVerifier, current: Collection[str] | None) -> Orphans:
    """Files in the directory that are no records and that the verifier does not need. Needed ones of a finished run that are in
    the wrong folder are a fault. `current`: the files that belong in the folders that people read; None: they are not known."""
    garbage = [
        name for folder in ("", COMMITS, *_FOLDERS, DAMAGED, STARTS) for name in storage.unfinished_files(folder)
    ]
    garbage += storage.names(DAMAGED)
    ours = {NAME, MARKER, COMMITS, DAMAGED, JUDGES, CHECKS, *_FOLDERS, *ADVISORY}
    foreign = [name for name in storage.names("") if name not in ours and not is_tree_page(name)]
    foreign += [name for name in storage.names(COMMITS) if not _is_record(name)]
    there, aside = set(data_files(storage)), set(storage.names(ASIDE))
    only_aside = {aside_name(name): name for name in verifier.needed if name not in there}
    for folder in _FOLDERS:
        for name in storage.names(folder):
            if not is_our_name(name.rpartition("/")[2]):
                foreign.append(name)
            elif name not in verifier.needed and name not in only_aside:
                garbage.append(name)
    for name in foreign:
        if name.partition("/")[0] in TABLES and name.endswith(".parquet"):
            ledger.fault(Check.FILES, name, "is none of the run, but is read with the files beside it", "move it away")
    if current is None or ledger.owed:
        return Orphans(garbage=tuple(garbage), foreign=tuple(foreign))
    parts = set(storage.names(FLUSHED)) - verifier.superseded
    strays = (there | parts).intersection(garbage)
    missing = {name for at, name in only_aside.items() if at in aside and name in current}
    for name in sorted((there - strays).difference(current) | missing):
        ledger.fault(Check.FILES, name, "is in the wrong folder", f"{_again(ledger.command)}, which moves it")
    return Orphans(garbage=tuple(garbage), foreign=tuple(foreign), strays=tuple(sorted(strays)))


def _is_record(name: str) -> bool:
    parts = record_parts(name.removeprefix(f"{COMMITS}/"))
    return parts is not None and parts[0] in (INPUT, UNIT, EDITION, GROWTH)
