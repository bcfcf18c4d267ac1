"""A run of `search` as its commit records describe it."""

from pipeline.storage.run_record import SEARCH
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredTask, stored_task


class StoredSearch(StoredTask):
    """A run of `search`."""

    @property
    def method(self) -> str:
        return str(self.identity["search.method"])

    @property
    def n(self) -> int:
        return int(str(self.identity["search.n"]))

    @property
    def accept(self) -> float | None:
        """`search.accept`; None where it is not set."""
        found = self.identity.get("search.accept")
        return None if found is None else float(str(found))


def stored_search(storage: Storage, *, partial: bool = False) -> StoredSearch:
    """The run of `search` in a directory. Raises as `stored_task` does."""
    return stored_task(storage, SEARCH, StoredSearch, partial=partial)
