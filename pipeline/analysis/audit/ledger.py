"""What an audit has looked at in a run directory, what it found there, and which files it needed.

`run.json` and commit records must be readable, complete and byte for byte as written. Files that records name must exist
unchanged, with intact pages, schema and row count. Files that no record needs are listed, our own apart from foreign ones by
their names; so are those that are not in the folder where they belong.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from pipeline.analysis.audit.findings import Check, Finding, Orphans, Words
from pipeline.config.recorded_settings import Settings
from pipeline.core.errors import Absent, Damaged, StoreError, Unreachable
from pipeline.core.ids import is_our_name, record_parts
from pipeline.core.table import TABLES
from pipeline.storage.commits import (
    EDITION,
    GROWTH,
    INPUT,
    UNIT,
    RecordSequence,
    commit_name,
    encode_commit,
    record_sequences,
)
from pipeline.storage.commits import FOLDER as COMMITS
from pipeline.storage.editions import data_files
from pipeline.storage.lock import MARKER
from pipeline.storage.run_record import (
    NAME,
    STAGED_INPUT,
    encode_identity,
    recorded_identity,
    refuse_other_schema,
    settings_copy,
    with_input,
)
from pipeline.storage.shards import ASIDE, DAMAGED, ShardRecord, aside_name, notes_of, verified_file
from pipeline.storage.starts import ADVISORY, is_tree_page
from pipeline.storage.starts import FOLDER as STARTS
from pipeline.storage.storage import Storage
from pipeline.storage.unit_files import FLUSHED

Content = tuple[Sequence[pa.Table], Mapping[str, str]]
"""The row groups of a file and its notes."""


def _folders() -> tuple[str, ...]:
    """Those of all tables that are known now, a plug-in's too, and of parts."""
    return (*TABLES, FLUSHED, ASIDE)


class Ledger:
    """See the module. `words`: those of the kind of run. `looked_at`: number of things that each check has examined. `owed`:
    ids of unfinished units. `needed`: names of files that must exist. `superseded`: names of files that a later record has
    replaced."""

    def __init__(self, storage: Storage, words: Words) -> None:
        self.storage = storage
        self.words = words
        self.looked_at: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self.owed: list[str] = []
        self.needed: set[str] = set()
        self.superseded: set[str] = set()

    def fault(self, check: str, where: str, fault: str, remedy: str) -> None:
        self.findings.append(Finding(check=check, where=where, fault=fault, remedy=remedy))

    @contextmanager
    def content_checked(self, check: str, where: str, remedy: str) -> Iterator[None]:
        """What the content of files breaks within this block is a fault. Only a forged checksum lets such content through, and
        it can break anything."""
        try:
            yield
        except (KeyError, ValueError, TypeError, IndexError) as error:
            self.fault(check, where, f"names files with invalid content ({error!r})", remedy)

    def settings(self) -> Settings | None:
        """The settings that the run was made with. If `run.json` is lost, they come from the copy in the record of the staged
        input; None if that is lost too.

        Raises UsageError for a run of another schema version.
        """
        self.looked_at[Check.SETTINGS] += 1
        copies = {
            found.sequence_id: [commit for commit in found.commits if commit.settings]
            for found in record_sequences(self.storage, INPUT)
        }
        try:
            identity: Settings = recorded_identity(self.storage)
        except Unreachable:
            raise
        except StoreError:
            self.fault(Check.SETTINGS, NAME, "is missing or damaged", f"{self.words.again}, with the same settings")
            lost = [found[0] for found in copies.values() if found]
            return lost[-1].recorded if lost else None
        refuse_other_schema(self.storage, identity)
        if self.storage.read(NAME) != encode_identity(identity):
            self.fault(Check.SETTINGS, NAME, "is not as it was written", "restore it from a backup")
        for commit in copies.get(str(identity.get(STAGED_INPUT)), ()):
            # Only the first record must have the first input.
            copy = with_input(identity, commit.recorded) if commit.number else identity
            if commit.settings != settings_copy(copy):
                fault = f"differs from the copy in {commit_name(commit)}"
                self.fault(Check.SETTINGS, NAME, fault, "restore it from a backup")
        return identity

    def sequence(self, sequence: RecordSequence) -> None:
        """Find records that are unreadable or not as they were written."""
        self.looked_at[Check.RECORDS] += sequence.length
        remedy = self.words.remedy(sequence.kind)
        for name in sequence.unreadable:
            self.fault(Check.RECORDS, name, "is missing or damaged", remedy)
        for commit in sequence.commits:
            name = commit_name(commit)
            if self.storage.read(name) != encode_commit(commit):
                self.fault(Check.RECORDS, name, "is not as it was written", f"move it away, then {remedy}")

    def content(self, shard: ShardRecord, remedy: str) -> Content | None:
        """Read a file that must exist. None, and a finding, if it is not what was committed."""
        self.needed.add(shard.file)
        return self._checked(shard, remedy, may_lack=False)

    def table(self, shard: ShardRecord, remedy: str) -> pa.Table | None:
        """All rows of a file that must exist. None, and a finding, if it is not what was committed."""
        content = self.content(shard, remedy)
        return None if content is None else pa.concat_tables(content[0])

    def superseded_table(self, shard: ShardRecord) -> pa.Table | None:
        """All rows of a file that may have been pruned. None if it was pruned. None, and a finding, if it is damaged."""
        self.superseded.add(shard.file)
        content = self._checked(shard, "remove it: nothing needs it any more", may_lack=True)
        return None if content is None else pa.concat_tables(content[0])

    def replaced(self, shards: Iterable[ShardRecord], sequence: RecordSequence) -> None:
        """Check files of a record that a later one of the sequence has replaced."""
        void = {name for commit in sequence.commits for name in commit.void}
        for shard in shards:
            if not {shard.file} & (void | self.needed | self.superseded):
                self.superseded_table(shard)

    def _checked(self, shard: ShardRecord, remedy: str, *, may_lack: bool) -> Content | None:
        try:
            file = verified_file(self.storage, shard)
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
        self.looked_at[Check.FILES] += 1
        if fault:
            self.fault(Check.FILES, shard.file, fault, remedy)
            return None
        return groups, notes_of(file)

    def orphans(self, current: Collection[str] | None, parts: Collection[str]) -> Orphans:
        """Files in the directory that are no records and that were not needed. Needed ones of a finished run that are in the
        wrong folder are a fault. `current`: the files that belong in the folders that people read; None: they are not known.
        `parts`: folders of runs in the directory."""
        storage = self.storage
        garbage = [
            name for folder in ("", COMMITS, *_folders(), DAMAGED, STARTS) for name in storage.unfinished_files(folder)
        ]
        garbage += storage.names(DAMAGED)
        ours = {NAME, MARKER, COMMITS, DAMAGED, *parts, *_folders(), *ADVISORY}
        foreign = [name for name in storage.names("") if name not in ours and not is_tree_page(name)]
        foreign += [name for name in storage.names(COMMITS) if not _is_record(name)]
        there, aside = set(data_files(storage)), set(storage.names(ASIDE))
        only_aside = {aside_name(name): name for name in self.needed if name not in there}
        for folder in _folders():
            for name in storage.names(folder):
                if not is_our_name(name.rpartition("/")[2]):
                    foreign.append(name)
                elif name not in self.needed and name not in only_aside:
                    garbage.append(name)
        for name in foreign:
            if name.partition("/")[0] in TABLES and name.endswith(".parquet"):
                fault = "is none of the run, but is read with the files beside it"
                self.fault(Check.FILES, name, fault, "move it away")
        strays: set[str] = set()
        if current is not None and not self.owed:
            strays = (there | (set(storage.names(FLUSHED)) - self.superseded)).intersection(garbage)
            missing = {name for at, name in only_aside.items() if at in aside and name in current}
            for name in sorted((there - strays).difference(current) | missing):
                self.fault(Check.FILES, name, "is in the wrong folder", f"{self.words.again}, which moves it")
        return Orphans(garbage=tuple(garbage), foreign=tuple(foreign), strays=tuple(sorted(strays)))


def _is_record(name: str) -> bool:
    parts = record_parts(name.removeprefix(f"{COMMITS}/"))
    return parts is not None and parts[0] in (INPUT, UNIT, EDITION, GROWTH)
