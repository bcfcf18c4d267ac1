"""The Python files of a GPU wheel of vLLM, kept in a folder that git ignores: `make contract` fetches them.

A wheel has some 320 MB, of which a few are Python. Where the index answers requests for a range of bytes, only the blocks with
these files are read, else the whole wheel, of which only the Python files are kept. zipfile checks the CRC of each.
"""

import io
import json
import os
import shutil
import urllib.request
import zipfile
from pathlib import Path

from tests.checkout import ROOT

CACHE = ROOT / ".cache" / "vllm-wheels"
INDEX = "https://pypi.org/simple"
PLATFORM = "manylinux_2_28_x86_64.whl"
BLOCK = 1 << 20
"""Bytes of one request. Python files lie close together between the large libraries."""
SECONDS = 60


def cached(version: str) -> Path | None:
    """The folder with the sources of this version. None where they were not fetched."""
    folder = CACHE / version
    return folder if (folder / "vllm" / "__init__.py").is_file() else None


def fetch(version: str) -> Path:
    """The sources of this version, from the index where they are not there yet.

    Raises LookupError where the index has no wheel of it, and OSError where it cannot be reached.
    """
    if folder := cached(version):
        return folder
    url, size = _wheel(version)
    unfinished = CACHE / f".{version}"
    shutil.rmtree(unfinished, ignore_errors=True)
    with zipfile.ZipFile(io.BufferedReader(_Remote(url, size), BLOCK)) as wheel:
        for member in sorted(wheel.infolist(), key=lambda member: member.header_offset):
            if member.filename.startswith("vllm/") and member.filename.endswith(".py"):
                wheel.extract(member, unfinished)
    unfinished.rename(CACHE / version)
    return CACHE / version


def _wheel(version: str) -> tuple[str, int]:
    index = os.environ.get("PIP_INDEX_URL", INDEX).rstrip("/")
    request = urllib.request.Request(f"{index}/vllm/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        files = json.load(answer)["files"]
    for file in files:
        if file["filename"].startswith(f"vllm-{version}-") and file["filename"].endswith(PLATFORM):
            return str(file["url"]), int(file["size"])
    raise LookupError(f"the index has no wheel of vllm {version} that ends in {PLATFORM}")


class _Remote(io.RawIOBase):
    """A file of known size at a URL, of which the blocks that are read are fetched."""

    def __init__(self, url: str, size: int) -> None:
        self._url = url
        self._size = size
        self._at = 0
        self._first = 0
        self._held = b""

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        if not self._first <= self._at < self._first + len(self._held):
            self._first, self._held = self._block(self._at)
        start = self._at - self._first
        piece = self._held[start : start + wanted]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _block(self, first: int) -> tuple[int, bytes]:
        """Bytes from `first` on, and where they begin: all of them from a server that ignores ranges."""
        last = min(first + BLOCK, self._size) - 1
        request = urllib.request.Request(self._url, headers={"Range": f"bytes={first}-{last}"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return (first if answer.status == 206 else 0), answer.read()
