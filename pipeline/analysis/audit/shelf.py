"""Files that records name, read and checked against them: there, unchanged, with intact pages, schema and row count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.analysis.audit.ledger import Check, Ledger
from pipeline.core.errors import Absent, Damaged, StoreError, Unreachable
from pipeline.core.schemas import SCHEMAS
from pipeline.storage.shards import ShardRecord, notes_of, verified_file
from pipeline.storage.storage import Storage

NEEDLESS = "remove it: nothing needs it any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A file's row groups, and the notes that were written with them."""

    groups: Sequence[pa.Table]
    notes: Mapping[str, str]


class Shelf:
    """`needed` are the names of files that must be there, `superseded` of those that a later record has made needless."""

    def __init__(self, storage: Storage, ledger: Ledger) -> None:
        self._storage = storage
        self._ledger = ledger
        self.needed: set[str] = set()
        self.superseded: set[str] = set()

    def content(self, shard: ShardRecord, remedy: str) -> Content | None:
        """A file that must be there; None, and a finding, where it is not what was committed."""
        self.needed.add(shard.file)
        return self._checked(shard, remedy, may_lack=False)

    def table(self, shard: ShardRecord, remedy: str) -> pa.Table | None:
        """All rows of a file that must be there; None, and a finding, where it is not what was committed."""
        content = self.content(shard, remedy)
        return None if content is None else pa.concat_tables(content.groups)

    def superseded_table(self, shard: ShardRecord) -> pa.Table | None:
        """All rows of a file that may have been pruned; None where it was, or is damaged, which is a finding."""
        self.superseded.add(shard.file)
        content = self._checked(shard, NEEDLESS, may_lack=True)
        return None if content is None else pa.concat_tables(content.groups)

    def _checked(self, shard: ShardRecord, remedy: str, *, may_lack: bool) -> Content | None:
        try:
            file = verified_file(self._storage, shard)
            groups = [file.read_row_group(group, use_threads=False) for group in range(file.num_row_groups)]
            same = file.schema_arrow.equals(SCHEMAS[shard.table], check_metadata=False)
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
