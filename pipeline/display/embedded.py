"""What an interactive part of a page consists of: files of a package, and compressed data in elements that no browser runs.

The data are base64 of gzip, and the page's script unpacks them. So text of a data set or a model is in the data alone, never in
markup or script.
"""

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files

BASE64 = 4 / 3
"""Characters of base64 for a byte."""
_GZIP_LEVEL = 6
_DIGITS = 3


def json_text(data: Mapping[str, object]) -> str:
    """Compact JSON. Raises ValueError for a number that JSON does not have."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def rounded(value: float | None) -> float | None:
    """The number with three decimals."""
    return None if value is None else round(value, _DIGITS)


def shortened(text: str, characters: int, table: str | None = None) -> str:
    """The text, or its beginning and its full length. `table`: the one that has all of it."""
    if len(text) <= characters:
        return text
    where = f", full text in {table}/*.parquet" if table else ""
    return f"{text[:characters]} ... ({len(text):,} characters{where})"


def packed(text: str) -> bytes:
    """The compressed text. The same text gives the same bytes, since they hold no time."""
    return gzip.compress(text.encode(), _GZIP_LEVEL, mtime=0)


def data_element(name: str, data: bytes) -> str:
    """The element with this id that holds packed data."""
    return f'<script type="application/octet-stream" id="{name}">{base64.b64encode(data).decode()}</script>'


def part(package: str, name: str) -> str:
    """The text of a file of a package."""
    return (files(package) / name).read_text("utf-8")


def script(named: Sequence[tuple[str, str]]) -> str:
    """The files of packages, in this order, as one script whose names nothing else sees."""
    parts = "\n".join(part(package, name) for package, name in named)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'
