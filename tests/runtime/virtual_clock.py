"""Runs in which neither waiting nor the disk takes time."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from pipeline.storage.disk import OsDisk
from tests.faults.loop import VirtualLoop


def on_a_virtual_clock(work: Coroutine[Any, Any, None]) -> None:
    """`asyncio.run` where waiting takes no time."""
    loop = VirtualLoop()
    try:
        loop.run_until_complete(work)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


class QuickDisk(OsDisk):
    """Flushes nothing, so that real time is not spent on waiting for the disk."""

    def write(self, path: str, data: bytes, mode: int = 0o666) -> None:
        Path(path).write_bytes(data)

    def sync_folder(self, path: str) -> None:
        return
