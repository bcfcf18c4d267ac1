"""Many small reads, one after the other, or, where each waits for a network, several at once."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pipeline.storage.objects import ObjectStorage
from pipeline.storage.storage import Storage

AT_ONCE = 16
"""Reads under way in an object store."""
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


def each(storage: Storage, read: Callable[[_Item], _Made], items: Iterable[_Item]) -> Iterator[_Made]:
    """What `read` makes of each item, in order. Raises what it raises."""
    if not isinstance(storage, ObjectStorage):
        yield from map(read, items)
        return
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="read") as pool:
        yield from pool.map(read, items)
